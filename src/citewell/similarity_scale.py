"""Converts the cosines of any embedding model to the scale of the model that ranking was fitted to.

Each model has a scale of its own: two unrelated texts have a cosine of .05 with one model and of .6 with another. So a
model that nothing was fitted to embeds a few questions and their answers, and the average cosines of unrelated and of
related pairs give a linear conversion. Pure; calls no model.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from citewell.models import Matrix

Cosines = TypeVar("Cosines", float, NDArray[np.float32])

PAIRS = (
    ("Why does bread dough rise?", "Yeast eats the sugar in the flour and gives off gas, which stretches the dough."),
    ("How do I change a flat bicycle tyre?", "Take the wheel off, lever the tyre over the rim and put in a new tube."),
    ("What causes the tides?", "The pull of the moon, and less that of the sun, heaps up the water of the oceans."),
    ("How long may fresh milk be kept?", "Once opened, a bottle of milk stays good in the fridge for three days."),
    ("Which command lists the files of a folder?", "Type ls to see what a directory contains; -a shows hidden files."),
    ("When should roses be pruned?", "Cut rose bushes back in early spring, when the forsythia flowers."),
    ("How is a password stored safely?", "Keep only a salted hash of the password, made by a slow function."),
    ("What does a resistor do?", "It limits the current in a circuit and turns the surplus energy into heat."),
    ("How many players has a football team?", "Each side brings eleven players to the pitch, one of them the keeper."),
    ("Can I return goods without the receipt?", "Goods are taken back within thirty days if payment can be proved."),
    ("What is a fever?", "A body temperature above 38 °C; the body raises it to fight an infection."),
    ("How does a boat sail against the wind?", "By tacking: it goes at an angle to the wind, left and right by turns."),
    ("Who may vote in the election?", "Every citizen who is eighteen on polling day and stands in the register."),
    ("How do I tune a guitar?", "Turn the pegs until the open strings sound E, A, D, G, B and E."),
    ("What happens when a database transaction fails?", "All its changes are rolled back, as if it had never begun."),
    ("How fast does light travel?", "In empty space it covers about three hundred thousand kilometres a second."),
)
"""Questions, each with a passage that answers it and none of the others."""

_MIN_DIFFERENCE = 0.05  # of related to unrelated; with less, a model does not tell them apart


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """The average cosine of a question with an unrelated passage, and with the passage that answers it."""

    unrelated: float
    related: float

    def read(self, cosines: Cosines) -> Cosines:
        """Convert cosines of this scale to the one that ranking was fitted to."""
        if self == IDENTITY_SCALE:
            return cosines
        stretch = (IDENTITY_SCALE.related - IDENTITY_SCALE.unrelated) / (self.related - self.unrelated)
        return IDENTITY_SCALE.unrelated + (cosines - self.unrelated) * stretch


IDENTITY_SCALE = SimilarityScale(unrelated=0.051, related=0.545)
"""The scale of `all-MiniLM-L6-v2-int8`, which ranking was fitted to."""


def measure_scale(questions: Matrix, passages: Matrix) -> SimilarityScale | None:
    """The scale of a model, from its vectors of `PAIRS`; None if it does not tell them apart."""
    cosines = questions @ passages.T
    is_pair = np.eye(len(cosines), dtype=bool)
    scale = SimilarityScale(unrelated=float(cosines[~is_pair].mean()), related=float(cosines[is_pair].mean()))
    return scale if scale.related - scale.unrelated >= _MIN_DIFFERENCE else None
