"""Adjusted p-values of the tests of one family, and of a family behind a gate."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from analysis.stats.arrays import FloatArray


def holm(pvalues: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, which controls the family-wise error.

    Parameters
    ----------
    pvalues : sequence[float or None]
        P-values; None is a planned test that is missing.

    Returns
    -------
    list[float or None]
        Adjusted p-values in the same order.

    Notes
    -----
    The k-th smallest of m p-values becomes the running maximum of (m - k + 1) p. It is never less powerful than
    Bonferroni.

    References
    ----------
    Holm 1979; used for Table 1 of the SPA paper.

    Examples
    --------
    >>> [round(p, 4) for p in holm([0.04, 0.0001, 0.0004, 0.003, 0.17])]
    [0.08, 0.0005, 0.0016, 0.009, 0.17]
    >>> holm([0.02, None])
    [0.04, None]
    """
    return _adjust(pvalues, _holm)


def bonferroni(pvalues: Sequence[float | None]) -> list[float | None]:
    """Return Bonferroni's adjusted p-values, min(1, m p), in the same order.

    A p-value of None is a planned test that is missing; it counts in the number m of tests. Clark et al. 2021, section
    2.4, has m = 15.

    >>> bonferroni([0.02, 0.4, None, None])
    [0.08, 1.0, None, None]
    """
    return _adjust(pvalues, lambda array: array * len(array))


def hommel(pvalues: Sequence[float | None]) -> list[float | None]:
    """Return Hommel's adjusted p-values, in the same order, which control the family-wise error if Simes' test is valid.

    Simes' test has to be valid for every part of the family. It is so for independent and for positively dependent
    p-values, such as those of comparisons with shared annotators or a shared system in the same direction. The adjusted
    p-value of a test is the largest p-value of Simes' test, min over k of j p_(k) / k, over all parts of the family
    that contain the test; among the parts with j tests, the one with the j - 1 largest other p-values decides, so m
    parts are enough (Hommel 1988, Biometrika 75, 383-386; Wright 1992, Biometrics 48, 1005-1013; Simes 1986, Biometrika
    73, 751-754). The method is never less powerful than Holm's. A p-value of None is a planned test that is missing and
    counts as 1.

    >>> hommel([0.01, 0.02, 0.03, 0.04]), [round(p, 4) for p in holm([0.01, 0.02, 0.03, 0.04])]
    ([0.04, 0.04, 0.04, 0.04], [0.04, 0.06, 0.06, 0.06])
    >>> hommel([0.02, None])
    [0.04, None]
    """
    return _adjust(pvalues, _hommel)


def behind_gate(pvalues: Sequence[float | None], gate_pvalue: float) -> list[float | None]:
    """Adjusted p-values of a family that is tested only after all comparisons of another family were shown.

    Parameters
    ----------
    pvalues : sequence[float or None]
        P-values, adjusted within their own family.
    gate_pvalue : float
        Largest adjusted p-value of the family before, which includes the gate of that family.

    Returns
    -------
    list[float or None]
        The larger of both for each test; None stays None.

    Notes
    -----
    Serial gatekeeping. If a hypothesis of the family before is true, an error in the later family needs an error in the
    one before, which has at most its level. If none is true, only the later family can have an error. So the level
    holds over both families, and each may use it in full.

    References
    ----------
    Westfall and Krishen 2001, Journal of Statistical Planning and Inference 99, 25-40; Dmitrienko and Tamhane 2007,
    Pharmaceutical Statistics 6, 171-180.

    Examples
    --------
    >>> behind_gate([0.001, 0.04, None], 0.02)
    [0.02, 0.04, None]
    """
    return [None if pvalue is None else max(pvalue, gate_pvalue) for pvalue in pvalues]


def adjust_among(
    pvalues: Sequence[float | None], others: Sequence[float | None], method: str = "holm"
) -> list[float | None]:
    """Adjusted p-values of tests that have an alternative test each, of which at most one has a true hypothesis.

    A comparison can be tested for a difference and for equivalence within a margin. "There is no difference" and "the
    difference is at least as large as the margin" cannot both be true.

    Parameters
    ----------
    pvalues : sequence[float or None], shape (m,)
        P-values of one test of each comparison; None is a planned test that is missing.
    others : sequence[float or None], shape (m,)
        The larger p-value of the tests of each comparison, with which it counts while another is adjusted.
    method : {"holm", "bonferroni", "hommel", "benjamini_hochberg"}, default "holm"
        Key of `METHODS`.

    Returns
    -------
    list[float or None]
        Adjusted p-values in the order of `pvalues`. Those of all tests of all comparisons together control the
        family-wise error, if the method does so for one test of each comparison.

    Raises
    ------
    ValueError
        If the two sequences differ in length.

    Notes
    -----
    A closed test rejects a hypothesis if it rejects every set of hypotheses that can be true together and contain it. Such
    a set has at most one hypothesis of each comparison. The set with the larger p-value of each other comparison is the last to be
    rejected, because Bonferroni's and Simes' tests depend on the size of a set and increase with each p-value. So m p-values
    are enough, and a family does not grow by its tests of equivalence.

    References
    ----------
    Marcus, Peritz and Gabriel 1976, Biometrika 63, 655-660 (closed tests); Shaffer 1986, Journal of the American
    Statistical Association 81, 826-831 (hypotheses that cannot be true together).

    Examples
    --------
    >>> difference, equivalence = [0.001, 0.03], [0.9, 0.01]
    >>> larger = [max(pair) for pair in zip(difference, equivalence)]
    >>> adjust_among(difference, larger), adjust_among(equivalence, larger)
    ([0.002, 0.06], [0.9, 0.02])
    >>> holm(difference)
    [0.002, 0.03]
    """
    if len(pvalues) != len(others):
        raise ValueError(f"others: {len(others)} where pvalues has {len(pvalues)}")
    adjust = METHODS[method]
    if list(pvalues) == list(others):
        return adjust(pvalues)
    return [
        adjust([*others[:position], pvalue, *others[position + 1 :]])[position]
        for position, pvalue in enumerate(pvalues)
    ]


def benjamini_hochberg(pvalues: Sequence[float | None]) -> list[float | None]:
    """Return Benjamini and Hochberg's adjusted p-values for the false discovery rate, in the same order.

    A p-value of None is a planned test that is missing. The method is for exploration only, and reports label it so.

    >>> [round(p, 5) for p in benjamini_hochberg([0.0004, 0.03, 0.012, 0.2, 0.049])]
    [0.002, 0.05, 0.03, 0.2, 0.06125]
    """
    return _adjust(pvalues, _benjamini_hochberg)


METHODS: Mapping[str, Callable[[Sequence[float | None]], list[float | None]]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "hommel": hommel,
    "benjamini_hochberg": benjamini_hochberg,
}


def _adjust(pvalues: Sequence[float | None], rule: Callable[[FloatArray], FloatArray]) -> list[float | None]:
    filled = np.ones(len(pvalues))
    for position, pvalue in enumerate(pvalues):
        if pvalue is None or pvalue != pvalue:
            continue
        if not 0 <= pvalue <= 1:
            raise ValueError(f"pvalues: row {position} is {pvalue!r}, not in 0..1")
        filled[position] = pvalue
    after = np.minimum(1.0, rule(filled)) if len(filled) else filled
    return [
        None if pvalue is None or pvalue != pvalue else float(after[position])
        for position, pvalue in enumerate(pvalues)
    ]


def _holm(pvalues: FloatArray) -> FloatArray:
    order = np.argsort(pvalues, kind="stable")
    stepped = np.maximum.accumulate(np.arange(len(pvalues), 0, -1) * pvalues[order])
    after = np.empty_like(pvalues)
    after[order] = stepped
    return after


def _hommel(pvalues: FloatArray) -> FloatArray:
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    ordered = pvalues[order]
    largest = np.zeros(m)
    for j in range(1, m + 1):
        # Simes' test of each test with the j - 1 largest others. The j largest tests share one part of the family.
        others = np.min(j * ordered[m - j + 1 :] / np.arange(2, j + 1), initial=np.inf)
        of_parts = np.minimum(j * ordered, others)
        of_parts[m - j :] = of_parts[m - j]
        largest = np.maximum(largest, of_parts)
    after = np.empty_like(pvalues)
    after[order] = largest
    return after


def _benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")[::-1]
    stepped = np.minimum.accumulate(m / np.arange(m, 0, -1) * pvalues[order])
    after = np.empty_like(pvalues)
    after[order] = stepped
    return after
