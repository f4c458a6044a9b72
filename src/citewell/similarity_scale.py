"""What a cosine is worth: each embedding model has a scale of its own, and what ranks and doubts was fitted to one.

Two texts that have nothing to do with each other are at .05 for one model and at .6 for the next. So a model that
nothing was fitted to is shown questions with their answers, and its cosines are read on the scale of the model that
everything was fitted to: what lies between unrelated and related there, lies there here. Pure; asks no model.
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
"""Questions, each with a passage that answers it and no other's."""

_LEAST = 0.05  # apart; a model that tells less can tell nothing


@dataclass(frozen=True, slots=True)
class SimilarityScale:
    """The usual cosine of a question with a passage about something else, and with the one that answers it."""

    unrelated: float
    related: float

    def read(self, cosines: Cosines) -> Cosines:
        """Cosines of this scale on the one that everything was fitted to."""
        if self == IDENTITY_SCALE:
            return cosines
        stretch = (IDENTITY_SCALE.related - IDENTITY_SCALE.unrelated) / (self.related - self.unrelated)
        return IDENTITY_SCALE.unrelated + (cosines - self.unrelated) * stretch


IDENTITY_SCALE = SimilarityScale(unrelated=0.051, related=0.545)
"""That of `all-MiniLM-L6-v2-int8`."""


def measure_scale(questions: Matrix, passages: Matrix) -> SimilarityScale | None:
    """The scale of a model by its vectors of the pairs; None where it does not tell them apart."""
    cosines = questions @ passages.T
    own = np.eye(len(cosines), dtype=bool)
    found = SimilarityScale(unrelated=float(cosines[~own].mean()), related=float(cosines[own].mean()))
    return found if found.related - found.unrelated >= _LEAST else None
