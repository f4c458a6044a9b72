"""Log formats: one JSON object per line with the id of its request, or text for people. API keys are masked."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_SECRET = re.compile(r"(cw_[0-9a-f]{16}_)[0-9a-f]{64}")


def _mask_keys(line: str) -> str:
    """Mask API keys: a client may send its key anywhere, also in a URL."""
    return _SECRET.sub(r"\1…", line)


class JsonLines(logging.Formatter):
    """One JSON object per line: time, level, logger, message, request id, and what was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": request_id.get(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS},
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        present = {key: value for key, value in entry.items() if value is not None}
        return _mask_keys(json.dumps(present, ensure_ascii=False, default=str))


class TextLines(logging.Formatter):
    """Text for people: time, level, message, then what was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        extras = " ".join(
            f"{key}={_on_one_line(value)}" for key, value in vars(record).items() if key not in _STANDARD_FIELDS
        )
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        line = f"{time} {record.levelname.lower():7} {record.getMessage()} {extras}".rstrip()
        return _mask_keys(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


def _on_one_line(value: object) -> str:
    """Escape control characters, so that a request cannot forge lines of the log."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in str(value))


def configure(*, level: str, as_json: bool) -> None:
    """Log to standard error; standard output is for answers."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("httpx", "httpx2"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they log every request to a vendor
    logging.getLogger("openai").setLevel(logging.CRITICAL)  # its SDK logs every error, with the vendor's message
