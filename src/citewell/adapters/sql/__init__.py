"""Everything that must last, in one database: SQLite or PostgreSQL. This module is the public surface."""

from citewell.adapters.sql.database import Database, database_exists
from citewell.adapters.sql.engine import check_database_url
from citewell.adapters.sql.insights import SqlEvaluations, SqlGaps, SqlIngests
from citewell.adapters.sql.keys import SqlKeys
from citewell.adapters.sql.library import SqlLibrary
from citewell.adapters.sql.projects import SqlProjects
from citewell.adapters.sql.queue import SqlUploads, sole_writer
from citewell.adapters.sql.sessions import SqlSessions
from citewell.adapters.sql.sqlite_file import (
    BackupContents,
    find_damage,
    has_content,
    has_documents,
    replace_database,
    set_aside,
    staged_copy,
    unusable,
    write_backup,
)
from citewell.adapters.sql.tables import generation_of
from citewell.adapters.sql.transfer import copy_database

__all__ = [
    "BackupContents",
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
    "copy_database",
    "database_exists",
    "find_damage",
    "generation_of",
    "has_content",
    "has_documents",
    "replace_database",
    "set_aside",
    "sole_writer",
    "staged_copy",
    "unusable",
    "write_backup",
]
