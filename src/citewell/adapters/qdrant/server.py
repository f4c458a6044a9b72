"""Calls a Qdrant server: retries within one time budget, and errors that name neither URL nor key.

Knows nothing of what a collection holds.
"""

import logging
import re
import socket
import ssl
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
from qdrant_client.models import Filter, PointsSelector, UpdateResult, UpdateStatus

from citewell.adapters.vendors import checked_key
from citewell.errors import IndexUnavailable, SettingsError
from citewell.retry import RetryPolicy, RetryRules, is_transient_status, with_retries

T = TypeVar("T")

_log = logging.getLogger("citewell.index")

READING = RetryPolicy(max_attempts=4, attempt_seconds=4.0, total_seconds=10.0)
"""For questions, which readers wait for."""
WRITING = RetryPolicy(max_attempts=8, attempt_seconds=60.0, total_seconds=300.0, max_backoff_seconds=20.0)
"""For ingests. A write with `wait` returns when it is applied, which takes a busy server a while."""
_FIRST_CALL = RetryPolicy(max_attempts=4, attempt_seconds=10.0, total_seconds=20.0)
"""For a server that has not answered yet: a wrong URL is not waited for."""

# Kept for a while, since a TLS handshake takes longer than most calls; one that the server closed is replaced.
_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=60.0)
_OLDEST_VERSION = 1, 19  # the first with term rarity per project and with prefixes in filters


# What the client raises for an answer that is not Qdrant's, beside its own exceptions.
_MALFORMED = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
_NOT_QDRANT = "what is under QDRANT_URL does not answer as Qdrant does"


class CollectionMissing(IndexUnavailable):
    """The server has no such collection."""


class _NotApplied(Exception):
    """The server took a write into its queue, but did not apply it in time."""


class QdrantServer:
    """A Qdrant server. Every failure of a call is an IndexUnavailable; what the server said goes to the log."""

    def __init__(self, client: AsyncQdrantClient, policy: RetryPolicy) -> None:
        self._client = client
        self._policy = policy
        self._is_patient = policy.total_seconds > READING.total_seconds
        self._has_answered = False

    @classmethod
    def at(cls, url: str, *, key: str | None, policy: RetryPolicy) -> "QdrantServer":
        """The server under a URL, which may have a port (default: 6333) and a path."""
        url = checked_url(url)
        key = checked_key(key, "QDRANT_API_KEY") if key else None
        host = urlsplit(url).hostname or ""
        is_near = host in ("127.0.0.1", "::1") or not set(host) & {".", ":"}  # this machine, or a network of containers
        if key and url.startswith("http://") and not is_near:
            _log.warning("QDRANT_API_KEY is sent without encryption, because QDRANT_URL begins with http://")
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the same, from the client
            client = AsyncQdrantClient(
                url=url,
                api_key=key,
                timeout=int(policy.attempt_seconds) or 1,
                check_compatibility=False,
                limits=_CONNECTIONS,
            )
        return cls(client, policy)

    @property
    def total_seconds(self) -> float:
        """The time that a call may take, retries included."""
        return self._policy.total_seconds

    async def call(self, request: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """The result of a request; raises CollectionMissing or another IndexUnavailable."""
        is_first = self._is_patient and not self._has_answered
        try:
            result = await with_retries(
                lambda: request(self._client),
                policy=_FIRST_CALL if is_first else self._policy,
                rules=_RULES,
                wait_out_rate_limits=self._is_patient,
            )
        except _RULES.caught as error:
            raise _translate(error) from error
        self._has_answered = True
        return result

    async def write(self, request: Callable[[AsyncQdrantClient], Awaitable[UpdateResult]]) -> None:
        """A write that has been applied when this returns. It is repeated where it may not have been."""

        async def apply(client: AsyncQdrantClient) -> None:
            result = await request(client)
            if result.status != UpdateStatus.COMPLETED:
                raise _NotApplied(result.status)

        await self.call(apply)

    async def delete(self, collection: str, selector: PointsSelector) -> None:
        await self.write(lambda client: client.delete(collection, selector, wait=True))

    async def count(self, collection: str, matching: Filter) -> int:
        """How many points match, exactly."""
        return (await self.call(lambda client: client.count(collection, count_filter=matching, exact=True))).count

    async def version(self) -> str:
        return (await self.call(lambda client: client.info())).version

    async def require_version(self) -> None:
        """Raise SettingsError for a server that is too old."""
        version = await self.version()
        numbers = re.match(r"(\d+)\.(\d+)", version)
        if numbers and (int(numbers[1]), int(numbers[2])) < _OLDEST_VERSION:
            oldest = ".".join(map(str, _OLDEST_VERSION))
            raise SettingsError(f"the server in QDRANT_URL is Qdrant {version}; upgrade it to {oldest} or newer")

    async def close(self) -> None:
        await self._client.close()


def checked_url(url: str) -> str:
    """The URL without spaces and slashes around it; raises SettingsError if it cannot be one."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        usable = usable and (parts.port or True) and not re.search(r"[\s\x00-\x1f]", url)
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError("QDRANT_URL is no URL such as http://127.0.0.1:6333 or https://qdrant.example.org:6333")
    if parts.username or parts.password:
        raise SettingsError("QDRANT_URL has a user name or password; put Qdrant's API key into QDRANT_API_KEY instead")
    return url


def _is_transient(error: Exception) -> bool:
    match error:
        case UnexpectedResponse():
            return is_transient_status(error.status_code or 500)
        case ResponseHandlingException():
            return isinstance(error.source, httpx.TransportError) and not _has_cause(error.source, ssl.SSLError)
        case _:
            return not isinstance(error, _MALFORMED)


def _headers(error: Exception) -> Mapping[str, str]:
    match error:
        case UnexpectedResponse():
            return {name.lower(): value for name, value in error.headers.items()}
        case ResourceExhaustedResponse():
            return {"retry-after": str(error.retry_after_s)}
        case _:
            return {}


_RULES = RetryRules(
    errors=(ApiException, QdrantException, _NotApplied, *_MALFORMED),
    is_transient=_is_transient,
    headers=_headers,
    is_rate_limit=lambda error: isinstance(error, QdrantException) or getattr(error, "status_code", None) == 429,
)


def _translate(error: Exception) -> IndexUnavailable:
    """Our error for one of the client's, for whoever asked; the log says more."""
    match error:
        case UnexpectedResponse(status_code=401 | 403):
            reason = "the vector store refuses the key in QDRANT_API_KEY"
        case UnexpectedResponse(status_code=404) if _is_qdrants(error):
            return CollectionMissing("the vector store has no such collection")
        case UnexpectedResponse(status_code=404):
            reason = "there is no vector store under QDRANT_URL"
        case UnexpectedResponse(status_code=413):
            reason = "the vector store refuses so large a request (status 413)"
        case UnexpectedResponse():
            reason = f"the vector store failed (status {error.status_code})"
        case QdrantException():
            reason = "the vector store has too many requests (status 429)"
        case ResponseHandlingException():
            reason = _transport_reason(error.source)
        case _ if isinstance(error, _MALFORMED):
            reason = _NOT_QDRANT
        case _:
            reason = "the vector store did not answer in time"
    _log.error("%s: %s", reason, _explanation(error))
    return IndexUnavailable(f"{reason}; try again in a moment" if _is_transient(error) else reason)


def _transport_reason(source: Exception) -> str:
    if _has_cause(source, ssl.SSLError):
        return "the certificate of the vector store is not trusted, or it does not speak TLS"
    if _has_cause(source, socket.gaierror):
        return "the host in QDRANT_URL cannot be found"
    if isinstance(source, httpx.TimeoutException):
        return "the vector store did not answer in time"
    if isinstance(source, httpx.TransportError):
        return "the vector store cannot be reached"
    return _NOT_QDRANT


def _is_qdrants(error: UnexpectedResponse) -> bool:
    """Whether an error is Qdrant's own rather than that of a proxy or of another server."""
    try:
        body = error.structured()
    except ValueError:
        return False
    return isinstance(body, dict) and "status" in body


def _explanation(error: Exception) -> str:
    """What the server or the network said, on one line."""
    cause = error.source if isinstance(error, ResponseHandlingException) else error
    return " ".join(f"{type(cause).__name__}: {cause}".split())[:500]


def _has_cause(error: BaseException, kind: type[BaseException]) -> bool:
    return any(isinstance(cause, kind) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
