"""Services that run beside requests: the upload worker and the recorder of unanswered questions."""

from citewell.http.background.gap_recorder import GapRecorder
from citewell.http.background.upload_worker import UploadWorker

__all__ = [
    "GapRecorder",
    "UploadWorker",
]
