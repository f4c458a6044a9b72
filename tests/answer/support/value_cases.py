"""Passages of documentation, and sentences about them that are right or wrong in one value."""

CLI = (
    "## Ingest\n\nRun `citewell ingest PATH` to index a folder. With `--prune`, documents whose files are gone are "
    "removed. `--chunk-size` sets the number of tokens in a chunk; the default is 800. Use `--[no-]color` to choose "
    "colours. The short form of `--verbose` is `-v`.\n\n```sh\ncitewell ingest docs --prune --chunk-size 512\n```\n"
)
CONFIG = (
    "## Retries\n\nThe client repeats a failed request. `max_retries` is the number of attempts, at most 10. "
    "`retryDelay` is the pause between two attempts in milliseconds; it must be at least 50. For example, set "
    "`timeout` to 120 for slow networks:\n\n```yaml\ntimeout: 120\nlog_level: debug\n```\n\nIf you do not set "
    '`CLIENT_CACHE_DIR`, the cache is kept in memory. The file `client.toml` holds all settings. The mode is "lazy" or '
    '"eager".\n'
)
LIMITS = (
    "## Limits\n\n| setting | default | maximum |\n| --- | --- | --- |\n| connections | 16 | 1,024 |\n"
    "| body size | 2 MB | 64 MB |\n\nA request may take up to 90 seconds. Python 3.10 or newer is needed. Keys expire "
    "after 30 days. Uploads need a minimum of 4 GB of memory. Files are kept until 2031. No more than 5 projects are "
    "free.\n"
)
API = (
    "## Models\n\n`BaseModel.model_dump()` returns a dictionary. Pass `exclude_none=True` to leave out fields that are "
    "`None`. `model_validate` raises a `ValidationError`. Fields are declared in `models.py`.\n\n```python\ndef "
    'connect(host: str, port: int = 5432, retries: int = 3) -> None: ...\n```\n\n```python\nconnect("db", '
    "port=6000)\n```\n"
)
SERVER = (
    "## Running the server\n\nStart the server with `acme serve`. It listens on port 8080; change that with `--port`. "
    "Requests are limited to 100 per minute. The timeout is between 5 and 60 seconds. Logs are written to "
    "`/var/log/acme.log`. To print the settings, wait for the prompt.\n\n```python\nclient = Client(url, retries=3)\n"
    "client.sync()\n```\n\n`Client(url, timeout=10)` opens a connection. The plan costs $12 per month.\n"
)

WRONG: list[tuple[str, str]] = [
    # invented flags, some of them in the question's own words
    (CLI, "Run `citewell ingest PATH --fast` to index a folder."),
    (CLI, "Use `--remove-gone` to remove documents whose files are gone."),
    (CLI, "With --delete, documents whose files are gone are removed."),
    (CLI, "The short form of `--verbose` is `-V1`."),
    (CLI, "Use `-p` to remove documents whose files are gone."),
    (CLI, "`--chunk-length` sets the number of tokens in a chunk."),
    (CLI, "Run `citewell index docs` to index a folder."),
    (CLI, "```sh\ncitewell ingest docs --folder --prune\n```"),
    (CLI, "Um einen Ordner zu indizieren, verwenden Sie `citewell ingest --ordner PATH` in der Konsole."),
    # invented settings, arguments, files and values
    (CONFIG, "`max_attempts` is the number of attempts, at most 10."),
    (CONFIG, "The number of attempts is set with max_request_retries."),
    (CONFIG, "`retryPause` is the pause between two attempts in milliseconds."),
    (CONFIG, "If you do not set `CLIENT_CACHE_PATH`, the cache is kept in memory."),
    (CONFIG, "If you do not set CLIENT_MEMORY_CACHE, the cache is kept in memory."),
    (CONFIG, "The file `settings.toml` holds all settings."),
    (CONFIG, "The file client.yaml holds all settings."),
    (CONFIG, 'The mode is "lazy" or "greedy".'),
    (API, "`BaseModel.model_export()` returns a dictionary."),
    (API, "BaseModel.to_dict() returns a dictionary."),
    (API, "Pass `skip_none=True` to leave out fields that are `None`."),
    (API, "`model_validate` raises a `ModelError`."),
    (API, "```python\nconnect(host, tries=3)\n```"),
    # numbers that are not there
    (CLI, "The default number of tokens in a chunk is 1000."),
    (CONFIG, "The number of attempts is at most 12."),
    (LIMITS, "A request may take up to 120 seconds."),
    (LIMITS, "The body of a request has at most 100 MB."),
    (LIMITS, "Python 3.8 or newer is needed."),
    (LIMITS, "Keys expire after 60 days."),
    (LIMITS, "A request may take up to 90 minutes."),
    # an example's value is no default
    (CLI, "The default of `--chunk-size` is 512 tokens."),
    (CONFIG, "The default `timeout` is 120."),
    (CONFIG, "By default, `timeout` is 120 for slow networks."),
    (CONFIG, "The default log level is `debug`."),
    (API, "The default port is 6000."),
    # the other side of a limit
    (CONFIG, "`max_retries` is the number of attempts, at least 10."),
    (CONFIG, "The pause between two attempts must be at most 50 milliseconds."),
    (CONFIG, "`retryDelay` must be less than 50."),
    (LIMITS, "A request takes at least 90 seconds."),
    (LIMITS, "A request takes more than 90 seconds."),
    (LIMITS, "Python 3.10 or older is needed."),
    (LIMITS, "Uploads need a maximum of 4 GB of memory."),
    (LIMITS, "Uploads need up to 4 GB of memory."),
    (LIMITS, "At least 5 projects are free."),
    (LIMITS, "Files are kept since 2031."),
    (SERVER, "Requests are limited to at least 100 per minute."),
    (SERVER, "The timeout is at least 60 seconds."),
    (SERVER, "The timeout is at most 5 seconds."),
    (SERVER, "The timeout is more than 60 seconds."),
    # a number per another time, in another currency, or in words
    (SERVER, "Requests are limited to 100 per second."),
    (SERVER, "Requests are limited to 100 requests/hour."),
    (SERVER, "The plan costs $12 per year."),
    (SERVER, "The plan costs $12 a day."),
    (SERVER, "The plan costs €12 per month."),
    (SERVER, "The plan costs 12 euros per month."),
    (SERVER, "Requests are limited to a thousand per minute."),
    # another path, and what stands in the text as a word, but in no code
    (SERVER, "Logs are written to /var/logs/acme.log."),
    (SERVER, "`Client(url, wait=10)` opens a connection."),
    (SERVER, "`Connection(url)` opens a connection."),
    (SERVER, "To open a connection, call `print()`."),
    (SERVER, "```python\nprint(8080)\n```"),
    (SERVER, "```python\nclient = Client(url)\nclient.push()\n```"),
]

RIGHT: list[tuple[str, str]] = [
    (CLI, "Run `citewell ingest PATH` to index a folder."),
    (CLI, "Run `citewell ingest <folder>` to index a folder."),
    (CLI, "Run `citewell ingest ./my-docs --prune` to index a folder."),
    (CLI, "With --prune, documents whose files are gone are removed."),
    (CLI, "```sh\ncitewell ingest docs --chunk-size=512\n```"),
    (CLI, "The default chunk size is 800 tokens."),
    (CLI, "Use `--no-color` or `--color` to choose colours."),
    (CLI, "The short form of `--verbose` is `-v`."),
    (CLI, "1. Run `citewell ingest PATH` to index a folder."),
    (CLI, "Step 1: Run `citewell ingest PATH` to index a folder."),
    (CLI, "```sh\ncitewell ingest docs --prune\n```"),
    (CONFIG, "`max_retries` is the number of attempts, at most ten."),
    (CONFIG, "The number of attempts, max_retries, is no more than 10."),
    (CONFIG, "The max retries are the number of attempts, up to 10."),
    (CONFIG, "`retry_delay` is the pause between two attempts in milliseconds; it must be at least 50."),
    (CONFIG, "The pause between two attempts must be 50 milliseconds or more."),
    (CONFIG, "If you do not set `CLIENT_CACHE_DIR`, the cache is kept in memory."),
    (CONFIG, "The settings are in `client.toml`."),
    (CONFIG, "For slow networks, set `timeout` to 120."),
    (CONFIG, 'The mode is "lazy" or "eager".'),
    (LIMITS, "The default number of connections is 16."),
    (LIMITS, "The maximum number of connections is 1024."),
    (LIMITS, "The default body size is 2 MB, and the maximum is 64 MB."),
    (LIMITS, "A request may take up to 1.5 minutes."),
    (LIMITS, "A request may take no more than 90 seconds."),
    (LIMITS, "At most 90 seconds may a request take."),
    (LIMITS, "Python 3.10 or newer is needed."),
    (LIMITS, "You need at least Python 3.10."),
    (LIMITS, "Keys expire after 30 days."),
    (LIMITS, "Uploads need at least 4 GB of memory."),
    (LIMITS, "Up to 5 projects are free."),
    (API, "`model_dump()` returns a dictionary."),
    (API, "`BaseModel.model_dump` returns a dictionary."),
    (API, "Pass `exclude_none=True` to leave out fields that are `None`."),
    (API, "`ValidationError` is raised by `model_validate`."),
    (API, "The default port is 5432."),
    (API, '```python\nconnect("db", port=6000)\n```'),
    (SERVER, "The timeout is at least 5 seconds."),
    (SERVER, "The timeout is at most one minute."),
    (SERVER, "The timeout is from 5 to 60 seconds."),
    (SERVER, "Requests are limited to at most 100 per minute."),
    (SERVER, "A hundred requests per minute are the limit."),
    (SERVER, "The plan costs $12 monthly."),
    (SERVER, "The plan costs 12 dollars every month."),
    (SERVER, "Logs are written to /var/log/acme.log."),
    (SERVER, "`Client(url, timeout=10)` opens a connection."),
    (SERVER, "The server listens on port 8080 in a second step."),
    (SERVER, "```python\nclient = Client(url, timeout=10)\nclient.sync()\n```"),
    # the number of a list item is no number of the sentence, and a label no name
    (SERVER, "1. Start the server with `acme serve` first."),
    (SERVER, "2) The server listens on port 8080, change it with `--port`."),
    (CONFIG, "3. The client repeats each failed request."),
    (CONFIG, "**Answer:** The client repeats a failed request."),
]

ADDS_ONLY: list[tuple[str, str]] = [
    (
        "Administrators can delete a project. A deleted project can be restored.",
        "Only administrators can delete a project.",
    ),
    ("The command runs on Linux and on macOS.", "The command runs exclusively on Linux."),
]
