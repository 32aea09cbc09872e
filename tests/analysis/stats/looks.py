"""A t test at planned looks, with the boundaries of a group-sequential design."""

import numpy as np
from scipy import stats

from analysis.stats.stopping_boundaries import group_sequential_design


def first_rejection(values, looks, *, null=0.5, shape="obrien_fleming"):
    """The number of units at the first look that rejects, or None."""
    design = group_sequential_design(np.asarray(looks) / looks[-1], shape=shape)
    for n, nominal in zip(looks, design.nominal, strict=True):
        if stats.ttest_1samp(values[:n], null).pvalue <= nominal:
            return int(n)
    return None
