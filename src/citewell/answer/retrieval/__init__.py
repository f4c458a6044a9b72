"""Finds the passages a question is about and ranks them: in the index, or in a reader's selection."""

from citewell.answer.retrieval.definitions import defined_thing, definition_sentence
from citewell.answer.retrieval.rerank import LocalReranker, Retrieval, score_passages
from citewell.answer.retrieval.search import HINT_LOG_ODDS, check_not_empty, retrieve, retrieve_passages
from citewell.answer.retrieval.selection import retrieve_from_selection, selection_as_passage
from citewell.answer.retrieval.weights import fitted_weights

__all__ = [
    "HINT_LOG_ODDS",
    "LocalReranker",
    "Retrieval",
    "check_not_empty",
    "defined_thing",
    "definition_sentence",
    "fitted_weights",
    "retrieve",
    "retrieve_from_selection",
    "retrieve_passages",
    "score_passages",
    "selection_as_passage",
]
