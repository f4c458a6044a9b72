"""Every exception that Citewell raises on purpose.

    CitewellError
    ├── SettingsError           a setting is missing or invalid
    ├── UnreadableFile          a file cannot be indexed; the others can
    ├── IngestRunning           another process holds the writer's lock
    ├── EmptyKnowledgeBase      nothing has been indexed yet
    ├── IndexMismatch           the index was built by another version
    │   └── OtherModel          … or with another embedding model
    ├── BadRequest              a request is invalid
    │   └── BadFilter           a search filter is invalid
    ├── IdempotencyConflict     an Idempotency-Key was used for another request
    ├── ModelError              the embedding model is broken, or its vendor fails
    ├── NotFound                there is no such resource, or the caller may not see it
    ├── Refused                 an API key is missing, wrong, revoked or not sufficient
    ├── TooBusy                 a rate limit or concurrency limit is exceeded
    ├── StoreUnavailable        the database does not respond
    │   ├── DatabaseUnusable    … or is missing, damaged or another program's
    │   └── IndexUnavailable    the vector store does not respond, or its files are damaged or missing
    ├── BackupError             a backup cannot be written, or a file is not a backup
    ├── MigrationError          an index or a database cannot be moved
    ├── RerankerUnavailable     the reranker failed; answers use the local ranking
    ├── WriterUnavailable       the LLM failed, or broke off; answers are quotes
    └── in `client/errors.py`   ServerUnreachable, NotCitewell, RequestFailed: errors of the client

Knows no HTTP status and no exit code: `http/errors.py` and `cli/options.py` each have one table.
"""


class CitewellError(Exception):
    """The base class of all exceptions here. The message is written for the person who sees it."""


class SettingsError(CitewellError):
    """A setting is missing or invalid."""


class UnreadableFile(CitewellError):
    """A file cannot be read or parsed. The other files are indexed."""


class IngestRunning(CitewellError):
    """Another process is ingesting into the same library."""


class EmptyKnowledgeBase(CitewellError):
    """Nothing has been indexed yet, so there is nothing to answer from."""


class IndexMismatch(CitewellError):
    """The index was built by another version of Citewell, or with another embedding model."""


class OtherModel(IndexMismatch):
    """The index was built with another embedding model than the configured one."""

    def __init__(self, *, made: str, configured: str) -> None:
        super().__init__(
            f"the index was made with the embedding model {made}, but {configured} is configured; configure {made} and "
            f"start again, or run `citewell ingest --reembed` to make the index anew with {configured}"
        )


class BadRequest(CitewellError):
    """The request is invalid; `field` names the part that is."""

    def __init__(self, message: str, *, field: str = "body") -> None:
        super().__init__(message)
        self.field = field


class BadFilter(BadRequest):
    """A filter of a search is invalid."""


class IdempotencyConflict(CitewellError):
    """The Idempotency-Key was used before, for another request."""


class ModelError(CitewellError):
    """The embedding model returns no vectors: its file is missing or not the trusted one, or its vendor fails."""


class NotFound(CitewellError):
    """There is no such resource, or the caller may not see it."""


class Refused(CitewellError):
    """The API key is missing, wrong, revoked, or does not allow this request."""


class TooBusy(CitewellError):
    """Too many requests; retry after `retry_after_seconds`."""

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class StoreUnavailable(CitewellError):
    """The database does not respond."""


class DatabaseUnusable(StoreUnavailable):
    """The database is missing, damaged or not Citewell's; it stays so until somebody acts on the reason."""

    def __init__(self, reason: str, *, name: str = "") -> None:
        super().__init__(f"the database {name} cannot be used: {reason}".replace("  ", " "))
        self.reason = reason


class BackupError(CitewellError):
    """A backup cannot be written, or a file is not a backup that can be restored."""


class MigrationError(CitewellError):
    """An index or a database cannot be moved, or did not arrive as it was; the source stands as before."""


class IndexUnavailable(StoreUnavailable):
    """The vector store does not respond, or its files are damaged or missing."""


class RerankerUnavailable(CitewellError):
    """The reranker failed. The answer uses the local ranking."""


class WriterUnavailable(CitewellError):
    """The LLM failed, or broke off in the middle of an answer."""
