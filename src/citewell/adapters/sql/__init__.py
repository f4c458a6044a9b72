"""One database for everything that must last: the library, conversations, keys and uploads; SQLite or PostgreSQL."""

from citewell.adapters.sql.engine import Database, check_place, is_made
from citewell.adapters.sql.library import SqlLibrary

__all__ = ["Database", "SqlLibrary", "check_place", "is_made"]
