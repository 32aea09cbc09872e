"""Group-sequential tests: a few planned looks at a study without a larger error.

The unit is the annotator, with one mean each, in the order of their claims. At most five looks are planned at
given numbers of units. Each uses Student's t test. Its p-value is compared with a boundary, so that the
probability of ever rejecting a true null is `significance`. O'Brien and Fleming's boundaries are strict early and
cost almost nothing at the end, Pocock's are constant. The classical boundaries need equally spaced looks; the
spending functions of Lan and DeMets do not.

References: O'Brien and Fleming 1979, Pocock 1977, Lan and DeMets 1983, Jennison and Turnbull 2000 (chapters 2, 7,
8, 19); the numerical integration is that of Armitage, McPherson and Rowe 1969.
"""

from analysis.stats.group_sequential._design import (
    KINDS,
    MAX_LOOKS,
    NEVER,
    SHAPES,
    GroupSequentialDesign,
    first_crossing_probabilities,
    group_sequential_design,
)
from analysis.stats.group_sequential._looks import VERDICTS, GroupSequentialResult, Look, group_sequential_test

__all__ = [
    "GroupSequentialDesign",
    "GroupSequentialResult",
    "KINDS",
    "Look",
    "MAX_LOOKS",
    "NEVER",
    "SHAPES",
    "VERDICTS",
    "first_crossing_probabilities",
    "group_sequential_design",
    "group_sequential_test",
]
