"""How few answers, or how few people, decide who is first.

A first place with a small p-value can still rest on a handful of answers. The answers (or people) are ordered by what
leaving each of them out does to the lead, to first order. The smallest set whose sum exceeds the lead is found, and the
board is computed again without it.

Reference: Broderick, Giordano and Meager 2020, An automatic finite-sample robustness metric: when can dropping a
little data make a big difference?
"""

from analysis.stats.first_place._removal import FirstPlaceSensitivity, Removal
from analysis.stats.first_place._scores import first_place_sensitivity
from analysis.stats.first_place._votes import first_place_sensitivity_of_votes

__all__ = ["FirstPlaceSensitivity", "Removal", "first_place_sensitivity", "first_place_sensitivity_of_votes"]
