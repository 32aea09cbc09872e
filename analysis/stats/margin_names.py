"""Names of claims by a margin, for modules that must not load numpy."""

NONINFERIORITY = "noninferiority"
SUPERIORITY_BY_MARGIN = "superiority_by_margin"
HYPOTHESES = (NONINFERIORITY, SUPERIORITY_BY_MARGIN)
