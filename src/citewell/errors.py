"""What can go wrong, said so that its reader knows what to do next.

    CitewellError
    ├── SettingsError           a setting is missing or makes no sense
    ├── UnreadableFile          one file cannot be taken in; the others can
    ├── IngestRunning           another process holds the writer's lock
    ├── EmptyKnowledgeBase      nothing has been ingested yet
    ├── IndexMismatch           the index was made by another version
    │   └── OtherModel          … or with another embedding model
    ├── BadRequest              what is asked for makes no sense
    │   └── BadFilter           a search is narrowed to what cannot be
    ├── ModelError              the embedding model gives no vectors: its file is not sound, or its vendor fails
    ├── NotFound                there is no such thing, or not for whoever asks
    ├── Refused                 a key is missing, wrong, revoked or not for this
    ├── TooBusy                 more is being asked than is allowed; come back later
    ├── StoreUnavailable        the database does not answer
    │   └── IndexUnavailable    the vector store does not answer
    ├── RerankerUnavailable     a vendor did not rank the passages; answers go on in the local order
    ├── WriterUnavailable       the LLM did not write, or not to the end; there are quotations instead
    └── in `client/errors.py`   ServerUnreachable, NotCitewell, RequestFailed: what a server did not do

This room knows no HTTP status and no exit code: `http/errors.py` and `cli/options.py` each keep one table.
"""


class CitewellError(Exception):
    """Everything Citewell raises on purpose; the message is written for the person who sees it."""


class SettingsError(CitewellError):
    """A setting is missing or makes no sense."""


class UnreadableFile(CitewellError):
    """One file cannot be taken in; the others can."""


class IngestRunning(CitewellError):
    """Another process holds the writer's lock."""


class EmptyKnowledgeBase(CitewellError):
    """Nothing has been ingested yet, so there is nothing to answer from."""


class IndexMismatch(CitewellError):
    """The index was made with another embedding model than the one that asks, or by another version of Citewell."""


class OtherModel(IndexMismatch):
    """The index was made with another embedding model than the one that is configured."""

    def __init__(self, *, made: str, configured: str) -> None:
        super().__init__(
            f"the index was made with the embedding model {made}, but {configured} is configured; configure {made} and "
            f"start again, or run `citewell ingest --reembed` to make the index anew with {configured}"
        )


class BadRequest(CitewellError):
    """What is asked for makes no sense."""


class BadFilter(BadRequest):
    """A search is narrowed to what cannot be."""


class ModelError(CitewellError):
    """The embedding model gives no vectors: its file is missing or not the one we trust, or its vendor fails."""


class NotFound(CitewellError):
    """There is no such thing, or not for whoever asks."""


class Refused(CitewellError):
    """A key is missing, wrong, revoked or not for this."""


class TooBusy(CitewellError):
    """More is being asked than is allowed."""

    def __init__(self, message: str, *, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class StoreUnavailable(CitewellError):
    """The database does not answer."""


class IndexUnavailable(StoreUnavailable):
    """The vector store does not answer."""


class RerankerUnavailable(CitewellError):
    """A vendor did not rank the passages; answers go on in the local order."""


class WriterUnavailable(CitewellError):
    """The LLM did not write, or not to the end."""
