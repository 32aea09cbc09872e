"""Reference numbers for the tests of agreement."""

from tests.analysis.stats.golden import golden

GOLDEN_ALL = golden("agreement")
GOLDEN = GOLDEN_ALL["four_coders"]
