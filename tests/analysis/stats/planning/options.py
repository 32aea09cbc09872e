"""Reference numbers for the tests of planning."""

from tests.analysis.stats.golden import golden

GOLDEN = golden("planning")
POWERS = golden("power")
