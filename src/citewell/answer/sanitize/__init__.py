"""Sanitize an LLM's text: remove links, URLs and HTML that are not in its passages, and recited parts of the prompt."""

from citewell.answer.sanitize.allowed import AllowedTargets
from citewell.answer.sanitize.links import parse_link_target
from citewell.answer.sanitize.markup import Sanitizer
from citewell.answer.sanitize.output import CITATION_PLACEHOLDER
from citewell.answer.sanitize.prompt_leak import PromptLeakFilter

__all__ = ["CITATION_PLACEHOLDER", "AllowedTargets", "PromptLeakFilter", "Sanitizer", "parse_link_target"]
