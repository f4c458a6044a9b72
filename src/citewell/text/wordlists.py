"""Reads the word lists in `data/`. The only module that knows their files."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

_DATA = files("citewell").joinpath("data")


def data_file(name: str) -> Traversable:
    """A file of the package's data folder."""
    return _DATA.joinpath(name)


@cache
def word_set(name: str) -> frozenset[str]:
    """The words of a list that are separated by white space."""
    return frozenset(data_file(name).read_text(encoding="utf-8").split())


@cache
def words_by_label(name: str) -> dict[str, frozenset[str]]:
    """The words of a list whose lines are `label: word word …`."""
    lines = data_file(name).read_text(encoding="utf-8").splitlines()
    return {label: frozenset(words.split()) for label, words in (line.split(":") for line in lines)}


def table_rows(name: str) -> list[list[str]]:
    """The columns of each line of a list; columns are separated by white space."""
    return [line.split() for line in data_file(name).read_text(encoding="utf-8").splitlines()]


def word_pairs(name: str) -> list[list[list[str]]]:
    """The two sides of each line `word word | word word`."""
    lines = data_file(name).read_text(encoding="utf-8").splitlines()
    return [[side.split() for side in line.split("|")] for line in lines]


@cache
def bert_vocabulary() -> list[str]:
    """The entries of BERT's vocabulary, ordered from signs to words, most frequent words first."""
    return data_file("bert-uncased-vocabulary.txt").read_text(encoding="utf-8").split("\n")
