"""Let an LLM write the answer: build its prompt, give it passages, and check each unit of its text."""

from citewell.answer.writing.context import PassageContext
from citewell.answer.writing.llm_text import WrittenText, write
from citewell.answer.writing.markdown import HIDDEN, ends_in_block, mask_code
from citewell.answer.writing.preamble import PreambleFilter
from citewell.answer.writing.prompt import fit_history

__all__ = [
    "HIDDEN",
    "PassageContext",
    "PreambleFilter",
    "WrittenText",
    "ends_in_block",
    "fit_history",
    "mask_code",
    "write",
]
