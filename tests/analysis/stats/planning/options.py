"""Reference numbers and options for the tests of planning."""

import math

from analysis.stats import planning
from tests.analysis.stats.golden import golden

GOLDEN = golden("planning")
POWERS = golden("power")


def options(**more):
    return planning.PlanOptions(**{"runs": 200, **more})


def within(found, wanted, runs, errors=3.5):
    return abs(found - wanted) < errors * math.sqrt(max(wanted * (1 - wanted), 0.01) / runs)
