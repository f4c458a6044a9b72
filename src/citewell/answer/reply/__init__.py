"""Shapes the reply: quotes, LLM text or refusal, citation markers, and where each citation leads."""

from citewell.answer.reply.markers import ChunkIdMarkers, NumberedMarkers
from citewell.answer.reply.outcome import EXTRACTIVE, LLM_UNAVAILABLE, Draft, to_pieces
from citewell.answer.reply.provenance import citation_status, cited_ids, excerpt_after, excerpt_before, locate

__all__ = [
    "EXTRACTIVE",
    "LLM_UNAVAILABLE",
    "ChunkIdMarkers",
    "Draft",
    "NumberedMarkers",
    "citation_status",
    "cited_ids",
    "excerpt_after",
    "excerpt_before",
    "locate",
    "to_pieces",
]
