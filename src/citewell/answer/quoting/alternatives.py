"""Platforms, languages and package managers: a question that names one is not answered by what holds for another. Pure.

"How do I install it on Windows?" is not answered by the command under "Linux", however well its words fit.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

_NAMES: Mapping[str, Mapping[str, str]] = {
    "platform": {
        "windows": r"windows|win(?:32|64|dows)?\ ?1[01]|powershell|cmd\.exe|\.exe|choco(?:latey)?|winget|wsl2?",
        "macos": r"mac\ ?os(?:\ x)?|os\ x|macs?|macbooks?|darwin|homebrew|brew",
        "linux": r"linux|ubuntu|debian|fedora|centos|rhel|red\ hat|arch\ linux|apt|apt-get|yum|dnf|pacman",
        "android": r"android",
        "ios": r"ios|iphone|ipad",
    },
    "javascript package manager": {
        "npm": r"npm|npx",
        "yarn": r"yarn",
        "pnpm": r"pnpm",
        "bun": r"bun|bunx",
    },
    "python package manager": {
        "pip": r"pip|pip3",
        "conda": r"conda|mamba|anaconda|miniconda",
        "poetry": r"poetry",
        "uv": r"uv",
        "pipenv": r"pipenv",
        "pdm": r"pdm",
    },
    "language": {
        "javascript": r"javascript|js",
        "typescript": r"typescript|ts|tsx",
        "python": r"python",
        "java": r"java",
        "go": r"golang",
        "rust": r"rust",
        "c++": r"c\+\+|cpp",
        "c#": r"c\#|csharp",
        "ruby": r"ruby",
        "php": r"php",
        "kotlin": r"kotlin",
        "swift": r"swift",
    },
    "shell": {"bash": r"bash", "zsh": r"zsh", "fish": r"fish", "powershell": r"powershell", "cmd": r"cmd(?:\.exe)?"},
}
_PATTERNS = {
    kind: re.compile(
        r"(?<![\w/@.-])(?:"
        + "|".join(f"(?P<n{number}>{names})" for number, names in enumerate(by_name.values()))
        + r")(?![\w/@+#-])",
        re.IGNORECASE | re.VERBOSE,
    )
    for kind, by_name in _NAMES.items()
}


def named_alternatives(text: str) -> dict[str, frozenset[str]]:
    """What a text names of each kind of alternative.

    named_alternatives("Run it on a Mac or on Ubuntu.") -> {"platform": frozenset({"macos", "linux"})}
    """
    named = {kind: frozenset(_names(kind, text)) for kind in _PATTERNS}
    return {kind: names for kind, names in named.items() if names}


def _names(kind: str, text: str) -> Iterator[str]:
    names = list(_NAMES[kind])
    for match in _PATTERNS[kind].finditer(text):
        yield names[int((match.lastgroup or "n0")[1:])]


def holds_for_another(asked: Mapping[str, frozenset[str]], *texts: str) -> bool:
    """Whether what these texts say is about another alternative than the one asked for.

    The texts go from the words themselves to the labels they stand under: the first that names any decides.
    """
    return any((named := _nearest_names(kind, texts)) and not named & names for kind, names in asked.items())


def holds_for_asked(asked: Mapping[str, frozenset[str]], *texts: str) -> bool:
    """Whether the first of these texts that names an alternative names the one asked for."""
    return any(_nearest_names(kind, texts) & names for kind, names in asked.items())


def _nearest_names(kind: str, texts: Sequence[str]) -> frozenset[str]:
    return next(filter(None, (frozenset(_names(kind, text)) for text in texts)), frozenset())
