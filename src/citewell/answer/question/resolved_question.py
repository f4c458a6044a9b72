"""A question that can be understood without the conversation before it. Says what to search for; searches nothing."""

from dataclasses import dataclass
from typing import Literal

from citewell.text import content_words

QuestionKind = Literal["question", "more", "unclear", "courtesy"]


@dataclass(frozen=True, slots=True)
class ResolvedQuestion:
    """What to search for, and which kind of request it is.

    `more` asks for what was not shown yet. `unclear` and `courtesy` get `reply` instead of an answer.
    """

    question: str
    kind: QuestionKind = "question"
    already_shown: tuple[str, ...] = ()
    """Texts that the reader has seen: earlier answers, or the marked text."""
    reply: str = ""
    continues: str = ""
    """The earlier question whose topic this one continues; empty where it has a topic of its own."""
    refers_to_marked_text: bool = False
    """Whether "this" in the question means the text that the reader has marked on the page."""
    from_selection: bool = False
    """Whether the answer may come from the reader's selection only."""

    @property
    def topic_question(self) -> str:
        """The question that names the topic: an earlier one for a follow-up, else this one."""
        return self.continues or self.question

    @property
    def search_text(self) -> str:
        """The text to search for; empty where the question only asks what the selection means."""
        return self.sought if self.from_selection else self.question

    @property
    def wants_answer(self) -> bool:
        """Whether the question needs an answer from documents, not just a polite or clarifying reply."""
        return self.kind in ("question", "more")

    def was_shown(self, quote: str) -> bool:
        """Whether the reader has seen these words already, so that "tell me more" does not repeat them."""
        return any(" ".join(quote.split()) in " ".join(text.split()) for text in self.already_shown)

    # `answer/flow.py` still reads the next three; they go as soon as it calls `resolve` and `quote`.
    @property
    def sought(self) -> str:
        return "" if self.refers_to_marked_text and not own_content_words(self.question) else self.question

    @property
    def points(self) -> bool:
        return self.refers_to_marked_text

    def was_said(self, quote: str) -> bool:
        return self.was_shown(quote)


# Short questions are easily taken for another language, so English question words are listed here as well.
_MEANING_QUESTION_WORDS = frozenset(
    ["tell", "me", "more", "what", "else", "explain", "why", "how", "mean", "this", "that", "it", "is", "go",
     "on", "meaning", "text", "passage", "paragraph", "paragraphs", "section", "sentence", "sentences",
     "selection", "selected", "word", "words", "summarize", "summarise", "summary", "summarized", "describe",
     "idea", "ideas", "point", "points", "key", "important", "gist", "essence", "simple", "simply", "simpler",
     "terms", "detail", "details", "briefly", "brief", "short", "author", "says", "said", "understand",
     "elaborate", "tldr", "tl;dr", "eli5", "part", "bit", "snippet", "bedeutet", "heißt", "erkläre", "erklär",
     "significa", "explica", "signifie", "explique"]
)  # fmt: skip


def own_content_words(question: str) -> list[str]:
    """The content words of a question; none where it only asks what something means, or for a summary."""
    return [word for word in content_words(question) if word.casefold() not in _MEANING_QUESTION_WORDS]
