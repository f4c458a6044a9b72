"""What to do with a URL instead of ingesting it: the commands that download it first. Downloads nothing itself."""

import re
from pathlib import PurePosixPath
from shlex import quote
from urllib.parse import SplitResult, unquote, urlsplit

from citewell.ingest.parse import SUFFIXES

_URL = re.compile(r"(?:[a-z][a-z0-9+.-]+:/|git@[\w.-]+:)", re.IGNORECASE)
_GIT_HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org")
_FOLDER_IN_REPOSITORY = re.compile(r"/(?:-/)?(?:tree|blob|src/branch)/[^/]+")
_BASE_URL = "--base-url https://docs.example.org"


def is_url(path: str) -> bool:
    """Whether a path argument is a URL: "https://…", "git+https://…", "s3://…", "git@host:…"."""
    return _URL.match(path) is not None


def how_to_download(url: str) -> str:
    """What `citewell ingest URL` says: why nothing happens, and which commands to use."""
    commands = "\n".join(f"  {command}".rstrip() for command in _commands(url))
    text = (
        f"{url} is a URL, and citewell reads only files and folders on this machine. Nothing was indexed.\n"
        f"Download it first, then ingest what you have:\n\n{commands}\n"
    )
    if _BASE_URL in commands:
        text += "\n--base-url is where the documents are published: citations link there. Leave it out if nowhere."
    return text


def _commands(url: str) -> list[str]:
    parts = _split(url)
    scheme = parts.scheme.lower()
    if scheme == "file":
        return [f"citewell ingest {quote(unquote(parts.path))}"]
    if scheme in ("s3", "gs"):
        tool = "aws s3 sync" if scheme == "s3" else "gcloud storage rsync --recursive"
        return [f"{tool} {quote(url)} downloaded", f"citewell ingest downloaded {_BASE_URL}"]
    if _is_repository(url):
        return _clone_commands(url)
    if scheme not in ("http", "https"):
        return [f"citewell ingest FOLDER {_BASE_URL}"]
    name = PurePosixPath(parts.path).name
    if PurePosixPath(name).suffix.lower() in SUFFIXES and not name.endswith((".html", ".htm")):
        return [f"curl --location --remote-name {quote(url)}", f"citewell ingest {quote(name)}"]
    wget = "wget --recursive --no-parent --adjust-extension --no-host-directories --directory-prefix=downloaded"
    return [
        f"{wget} {quote(url)}",
        f"citewell ingest downloaded --base-url {quote(f'{parts.scheme}://{parts.netloc}')}",
        "",
        "# better, if the site has a public repository: its sources",
        "git clone --depth 1 REPOSITORY downloaded",
        f"citewell ingest downloaded/docs --base-url {quote(url)}",
    ]


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # "https://[" and the like
        return urlsplit("")


def _is_repository(url: str) -> bool:
    parts = _split(url)
    host = (parts.hostname or "").removeprefix("www.")
    return url.startswith(("git@", "git+", "git:", "ssh:")) or parts.path.endswith(".git") or host in _GIT_HOSTS


def _clone_commands(url: str) -> list[str]:
    """Clone the repository; of a link to one of its folders or files, ingest only that."""
    address = url.removeprefix("git+").split("?")[0].split("#")[0].rstrip("/")
    repository, *below = _FOLDER_IN_REPOSITORY.split(address, maxsplit=1)
    name = PurePosixPath(repository.replace(":", "/")).name.removesuffix(".git")
    inside = below[0].strip("/") if below else ""
    folder = f"{name}/{inside}" if inside else name
    return [f"git clone --depth 1 {quote(repository)} {quote(name)}", f"citewell ingest {quote(folder)} {_BASE_URL}"]
