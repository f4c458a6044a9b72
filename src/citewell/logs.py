"""Logs a machine can read: one JSON object per line, with the request it belongs to. No key is ever in them."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_SECRET = re.compile(r"(cw_[0-9a-f]{16}_)[0-9a-f]{64}")


def _without_keys(line: str) -> str:
    """A client may write its key anywhere, also into an address."""
    return _SECRET.sub(r"\1…", line)


class JsonLines(logging.Formatter):
    """Level, message and whatever was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
            **{key: value for key, value in vars(record).items() if key not in _OWN},
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        told = {key: value for key, value in entry.items() if value is not None}
        return _without_keys(json.dumps(told, ensure_ascii=False, default=str))


class TextLines(logging.Formatter):
    """The same for people: time, level, message, then what was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{key}={_on_one_line(value)}" for key, value in vars(record).items() if key not in _OWN)
        when = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        line = f"{when} {record.levelname.lower():7} {record.getMessage()} {facts}".rstrip()
        return _without_keys(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


def _on_one_line(value: object) -> str:
    """So that nobody writes lines of our log by asking for a strange address."""
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in str(value))


def configure(*, level: str, as_json: bool) -> None:
    """Send everything to standard error; standard output belongs to answers."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("httpx", "httpx2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they would tell of every call to a vendor
    logging.getLogger("openai").setLevel(logging.CRITICAL)  # and its SDKs of every fault, in a vendor's words
