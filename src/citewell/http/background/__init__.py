"""Services that run beside requests: upload worker, recorder of unanswered questions, suggested questions."""

from citewell.http.background.gap_recorder import GapRecorder
from citewell.http.background.suggestions import Suggestions
from citewell.http.background.upload_worker import UploadWorker

__all__ = [
    "GapRecorder",
    "Suggestions",
    "UploadWorker",
]
