"""Creates the configured engines and stores. With `home.py`, all that knows both settings and adapters."""

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
    "Stores",
    "UploadResources",
    "check_settings",
    "indexed_projects",
    "ingest_recipe",
    "is_ingest_running",
    "open_for_answers",
    "open_for_ingest",
    "open_for_preview",
    "open_for_restore",
    "open_for_uploads",
    "open_stores",
]
