"""Finds what a question is about: its content words, keywords and specific terms. Pure."""

from functools import cache

from citewell.text.language import ENGLISH, detect_language, function_words
from citewell.text.stemming import stem, stemmer
from citewell.text.wordlists import bert_vocabulary, word_set
from citewell.text.words import split_words


def content_words(text: str) -> list[str]:
    """The words of a text that say what it is about, without question phrases such as "how do I".

    Empty where there are no others. Question phrases are rare in prose, so their rarity would make them look important.
    """
    language = detect_language(text)
    question_phrases = word_set("question-phrases.txt") if language == ENGLISH else function_words(language)
    return [word for word in split_words(text) if word.casefold().replace("’", "'") not in question_phrases]


def keywords(question: str) -> dict[str, str]:
    """The question's content words by their stems, in order of appearance.

    keywords("How do I calibrate the camera?") -> {"calibr": "calibrate", "camera": "camera"}
    """
    language = detect_language(question)
    return {stem(word, language): word for word in content_words(question) or split_words(question)}


def specific_terms(question: str) -> frozenset[str]:
    """Stems of what only this question would say: names, codes, words that are not general English.

    specific_terms("Does nitinol beat a Dynamixel MX64?") -> stems of nitinol, Dynamixel and MX64
    """
    words = split_words(question)
    language = detect_language(question)
    english = language == ENGLISH and question.isascii()
    specific = {
        stem(word, language)
        for position, word in enumerate(words)
        if any(character.isdigit() for character in word)
        or (english and position > 0 and word[0].isupper())
        or (english and len(word) > 3 and stem(word) not in _general_english())
    }
    return frozenset(specific & keywords(question).keys())


def is_general_english(word: str) -> bool:
    """Whether a word, or another form of it, is frequent in English."""
    return stem(word) in _general_english()


@cache
def _general_english() -> frozenset[str]:
    """Stems of the words that are frequent enough in English to be whole entries of BERT's vocabulary."""
    entries = [entry for entry in bert_vocabulary() if entry.isalpha()]
    # In one call, since the first question waits for it: one call for each word takes ten times as long.
    ascii_stems = stemmer(ENGLISH).stemWords([entry for entry in entries if entry.isascii()])
    return frozenset(ascii_stems) | {stem(entry) for entry in entries if not entry.isascii()}
