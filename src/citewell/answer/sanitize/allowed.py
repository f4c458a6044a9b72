"""What an answer may point at: the addresses and tags that stand in the texts it is written from. Pure."""

import re
from collections.abc import Callable, Iterable

from citewell.answer.sanitize.links import readings, runs_script

# An address that stands in a text is not the beginning or the end of a longer one: what follows must not go on with it.
_BEFORE = r"(?<![\w+.\-/%~:@#?=&])"
_AFTER = r"(?![\w/%~@#=&+$-]|[.,:;!?'*()]+[\w/%~@#=&+$-])"


class AllowedTargets:
    """AllowedTargets(lambda: ["See https://a.org/b."]).has("https://a.org/b") -> True, but not so "https://a.org/b?q=1".

    The texts are asked for each time: more may be added while an answer is written.
    """

    def __init__(self, texts: Callable[[], Iterable[str]]) -> None:
        self._texts = texts

    def has(self, target: str) -> bool:
        """Whether this address, or this tag, stands in a text just so, whole."""
        texts = [text for text in self._texts() if target in text] if target.strip() else []
        is_tag = target.startswith("<") and target.endswith(">")
        return bool(texts) if is_tag else any(re.search(_BEFORE + re.escape(target) + _AFTER, text) for text in texts)

    def has_url(self, target: str) -> bool:
        """Whether this address stands in a text, as it is written or as it is read."""
        return any(map(self.has, readings(target)))

    def has_link(self, target: str) -> bool:
        """Whether this address may be that of a link: it stands in a text and runs no script."""
        return self.has_url(target) and not runs_script(target)
