"""Creates the configured engines and stores. With `home.py`, all that knows both settings and adapters."""

from citewell.wiring.engines import make_tracer
from citewell.wiring.move_database import MovedDatabase, move_database
from citewell.wiring.move_index import move_index
from citewell.wiring.resources import (
    AnswerResources,
    Stores,
    UploadResources,
    check_settings,
    indexed_projects,
    ingest_recipe,
    is_ingest_running,
    open_for_answers,
    open_for_ingest,
    open_for_preview,
    open_for_restore,
    open_for_uploads,
    open_stores,
)

__all__ = [
    "AnswerResources",
    "MovedDatabase",
    "Stores",
    "UploadResources",
    "check_settings",
    "indexed_projects",
    "ingest_recipe",
    "is_ingest_running",
    "make_tracer",
    "move_database",
    "move_index",
    "open_for_answers",
    "open_for_ingest",
    "open_for_preview",
    "open_for_restore",
    "open_for_uploads",
    "open_stores",
]
