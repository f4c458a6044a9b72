"""Shapes the reply: quotes, LLM text or refusal, citation markers, and where each citation leads."""

from citewell.answer.reply.markers import ChunkIdMarkers, NumberedMarkers
from citewell.answer.reply.outcome import EXTRACTIVE, Draft, Fallback, deliver
from citewell.answer.reply.provenance import citation_status, cited_ids, excerpt_after, excerpt_before, locate

__all__ = [
    "EXTRACTIVE",
    "ChunkIdMarkers",
    "Draft",
    "Fallback",
    "NumberedMarkers",
    "citation_status",
    "cited_ids",
    "deliver",
    "excerpt_after",
    "excerpt_before",
    "locate",
]
