"""What to do with a URL instead of ingesting it: the commands that download it first. Downloads nothing itself."""

import re
from pathlib import PurePosixPath
from urllib.parse import urlsplit

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
    commands = "\n".join(f"  {command}" for command in _commands(url))
    text = (
        f"{url} is a URL, and citewell reads only files and folders on this machine. Nothing was indexed.\n"
        f"Download it first, then ingest what you have:\n\n{commands}\n"
    )
    if _BASE_URL in commands:
        text += "\n--base-url is where the documents are published: citations link there. Leave it out if nowhere."
    return text


def _commands(url: str) -> list[str]:
    scheme = urlsplit(url).scheme.lower()
    if scheme == "file":
        return [f"citewell ingest {urlsplit(url).path}"]
    if scheme in ("s3", "gs"):
        tool = "aws s3 sync" if scheme == "s3" else "gcloud storage rsync --recursive"
        return [f"{tool} {url} downloaded", f"citewell ingest downloaded {_BASE_URL}"]
    if _is_repository(url):
        return _clone_commands(url)
    if scheme not in ("http", "https"):
        return [f"citewell ingest FOLDER {_BASE_URL}"]
    parts = urlsplit(url)
    name = PurePosixPath(parts.path).name
    if PurePosixPath(name).suffix.lower() in SUFFIXES and not name.endswith((".html", ".htm")):
        return [f"curl --location --remote-name '{url}'", f"citewell ingest {name}"]
    return [
        f"wget --recursive --no-parent --adjust-extension --no-host-directories --directory-prefix=downloaded '{url}'",
        f"citewell ingest downloaded --base-url {parts.scheme}://{parts.netloc}",
        "",
        "# better, if the site has a public repository: its sources",
        "git clone --depth 1 REPOSITORY downloaded",
        f"citewell ingest downloaded/docs --base-url {url}",
    ]


def _is_repository(url: str) -> bool:
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    return url.startswith(("git@", "git+", "git:", "ssh:")) or parts.path.endswith(".git") or host in _GIT_HOSTS


def _clone_commands(url: str) -> list[str]:
    """Clone the repository; of a link to one of its folders or files, ingest only that."""
    address = url.removeprefix("git+").split("?")[0].split("#")[0].rstrip("/")
    repository, *below = _FOLDER_IN_REPOSITORY.split(address, maxsplit=1)
    name = PurePosixPath(repository.replace(":", "/")).name.removesuffix(".git")
    inside = below[0].strip("/") if below else ""
    folder = f"{name}/{inside}" if inside else name
    return [f"git clone --depth 1 {repository} {name}", f"citewell ingest {folder} {_BASE_URL}"]
