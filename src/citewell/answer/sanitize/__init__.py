"""What may leave of an LLM's text: no link, address or HTML that is not in its sources, and nothing of the prompt."""

from citewell.answer.sanitize.allowed import AllowedTargets
from citewell.answer.sanitize.links import link_target
from citewell.answer.sanitize.markup import Sanitizer
from citewell.answer.sanitize.output import CITED
from citewell.answer.sanitize.prompt_leak import Prompt

__all__ = ["CITED", "AllowedTargets", "Prompt", "Sanitizer", "link_target"]
