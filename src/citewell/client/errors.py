"""Errors that the client raises when a server does not do what it was asked for."""

from citewell.errors import CitewellError
from citewell.schemas.errors import ErrorResponse


class ServerUnreachable(CitewellError):
    """There is no server at this address, it did not respond in time, or the connection broke."""


class NotCitewell(CitewellError):
    """The server is another program, or another version of Citewell."""


class RequestFailed(CitewellError):
    """The server responded with an error: `problem` is its response, `status` the HTTP status.

    If a stream had already begun, the status is 200.
    """

    def __init__(self, problem: ErrorResponse, *, status: int) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.status = status
