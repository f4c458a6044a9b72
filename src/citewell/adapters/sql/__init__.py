"""Everything that must last, in one database: SQLite or PostgreSQL. This module is the public surface."""

from citewell.adapters.sql.database import Database, check_database_url, database_exists
from citewell.adapters.sql.insights import SqlEvaluations, SqlGaps, SqlIngests
from citewell.adapters.sql.keys import SqlKeys
from citewell.adapters.sql.library import SqlLibrary
from citewell.adapters.sql.projects import SqlProjects
from citewell.adapters.sql.sessions import SqlSessions
from citewell.adapters.sql.uploads import SqlUploads

__all__ = [
    "Database",
    "SqlEvaluations",
    "SqlGaps",
    "SqlIngests",
    "SqlKeys",
    "SqlLibrary",
    "SqlProjects",
    "SqlSessions",
    "SqlUploads",
    "check_database_url",
    "database_exists",
]
