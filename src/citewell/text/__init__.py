"""Text as every package reads it: words, stems, language, keywords, sentences, code fences, word lists.

Pure. Knows nothing of documents, questions or answers.
"""

from citewell.text.fences import FENCE, closes_fence
from citewell.text.language import ENGLISH, detect_language, function_words, mostly_non_latin
from citewell.text.sentences import sentence_spans, sentence_stems
from citewell.text.stemming import bm25_weight, stem, stems
from citewell.text.terms import content_words, is_general_english, keywords, specific_terms
from citewell.text.units import HIDDEN_DIRECTIVES, PROSE_DIRECTIVES, Unit, announced_units, split_units, unit_text
from citewell.text.wordlists import bert_vocabulary, data_file, table_rows, word_pairs, word_set, words_by_label
from citewell.text.words import replace_surrogates, split_words

__all__ = [
    "ENGLISH",
    "FENCE",
    "HIDDEN_DIRECTIVES",
    "PROSE_DIRECTIVES",
    "Unit",
    "announced_units",
    "bert_vocabulary",
    "bm25_weight",
    "closes_fence",
    "content_words",
    "data_file",
    "detect_language",
    "function_words",
    "is_general_english",
    "keywords",
    "mostly_non_latin",
    "replace_surrogates",
    "sentence_spans",
    "sentence_stems",
    "specific_terms",
    "split_units",
    "split_words",
    "stem",
    "stems",
    "table_rows",
    "unit_text",
    "word_pairs",
    "word_set",
    "words_by_label",
]
