"""The answer that an LLM writes: its prompt, the passages it is given, and what becomes of its words."""

from citewell.answer.writing.context import PassageContext
from citewell.answer.writing.markdown import HIDDEN, mask_code
from citewell.answer.writing.pipeline import Pipeline
from citewell.answer.writing.preamble import Preamble
from citewell.answer.writing.prompt import fit_history

__all__ = ["HIDDEN", "PassageContext", "Pipeline", "Preamble", "fit_history", "mask_code"]
