"""Decide which link targets, URLs and tags an answer may contain: those in the texts it is written from. Pure.

Knows nothing of how a target is found in Markdown.
"""

import re
from collections.abc import Callable, Iterable

from citewell.answer.sanitize.links import runs_script, target_spellings

# A URL counts only as a whole: the characters around it must not make it a part of a longer one.
_NO_URL_BEFORE = r"(?<![\w+.\-/%~:@#?=&])"
_NO_URL_AFTER = r"(?![\w/%~@#=&+$-]|[.,:;!?'*()]+[\w/%~@#=&+$-])"


class AllowedTargets:
    """The link targets, URLs and tags that occur in the source texts.

    AllowedTargets(lambda: ["See https://a.org/b."]).allows("https://a.org/b") -> True; "https://a.org/b?q=1" -> False

    Calls `texts` for every check, because a search may add passages while an answer is written.
    """

    def __init__(self, texts: Callable[[], Iterable[str]]) -> None:
        self._texts = texts

    def allows(self, target: str) -> bool:
        """Whether this URL or tag occurs in a source text, whole and in this spelling."""
        texts = [text for text in self._texts() if target in text] if target.strip() else []
        if target.startswith("<") and target.endswith(">"):  # a tag
            return bool(texts)
        return any(re.search(_NO_URL_BEFORE + re.escape(target) + _NO_URL_AFTER, text) for text in texts)

    def allows_url(self, target: str) -> bool:
        """Whether this URL occurs in a source text, as written or with escapes and entities decoded."""
        return any(map(self.allows, target_spellings(target)))

    def allows_link(self, target: str) -> bool:
        """Whether this may be a link target: an allowed URL that runs no script."""
        return self.allows_url(target) and not runs_script(target)
