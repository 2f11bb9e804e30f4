"""The five sentences of Stableford's word count, as numbers.

T. Stableford, *Implementing operator state checkpoint based fault-tolerance in Apache Storm*, City University
London, 2015. 4.4 words a sentence on average, 19 different words.
"""

from __future__ import annotations

import numpy as np

SENTENCES = (
    "tinker taylor soldier spy",
    "the good the bad and the ugly",
    "from dusk till dawn",
    "alice in wonderland",
    "gone with the wind",
)

WORDS: tuple[str, ...] = tuple(dict.fromkeys(word for sentence in SENTENCES for word in sentence.split()))

LENGTHS = np.array([len(sentence.split()) for sentence in SENTENCES], np.int64)
STARTS = np.cumsum(LENGTHS) - LENGTHS
FLAT = np.array([WORDS.index(word) for sentence in SENTENCES for word in sentence.split()], np.int64)
LONGEST = int(LENGTHS.max())
