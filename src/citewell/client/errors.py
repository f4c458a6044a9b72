"""What a client is told when a server does not do what it was asked to."""

from citewell.errors import CitewellError
from citewell.schemas.errors import ErrorResponse


class ServerUnreachable(CitewellError):
    """Nothing answers there, not in time, or not to the end."""


class NotCitewell(CitewellError):
    """What answers there does not speak as Citewell does: another program, or another version."""


class RequestFailed(CitewellError):
    """The server said what is wrong: `problem` is its answer, `status` the HTTP status.

    In a stream that had begun, the status is 200.
    """

    def __init__(self, problem: ErrorResponse, *, status: int) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.status = status
