"""One database for everything that must last: the library, conversations, keys and uploads; SQLite or PostgreSQL."""

from citewell.adapters.sql.library import SqlLibrary

__all__ = ["SqlLibrary"]
