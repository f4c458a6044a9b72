"""Find the files to ingest, and say why others are skipped. Knows folders and file names, never a document's text."""

from citewell.ingest.walk.folders import SourceFile, Walk, walk
from citewell.ingest.walk.rules import FileRules

__all__ = ["FileRules", "SourceFile", "Walk", "walk"]
