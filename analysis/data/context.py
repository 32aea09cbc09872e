"""The input of a protocol's analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from .planned_labels import PlannedLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisContext:
    """The live answers of submitted assignments, and the parameters of the analysis.

    ``rows``: one answer per row (``analysis.data.frames``), on 0 to 1. ``is_kept`` marks annotators of the recommended
    estimates, kept by the outcome-blind rules. ``is_kept_paper`` marks those of the paper's estimates. ``kept:<rule>`` marks
    those that one rule would keep. ``sections``: the live sections of the protocol. ``tau``: the limit of the rule
    ``incoherent``. ``is_after_tau``: whether that rule excluded anybody. ``claims``: all planned labels, if the analysis
    reads them. ``deltas``: further values of delta for which two choices count the labels that each strategy needs.
    ``page_seconds``: the seconds of each page by assignment and page key, if the analysis reads them. ``metric_scores``: the
    scores of metrics about outputs (``analysis.data.metric_scores``), likewise.
    ``is_only_planned``: whether only the planned comparisons are wanted, without companion methods.
    """

    protocol: str
    rows: "DataFrame"
    sections: Sequence[Any]
    seed: str
    level: float = 0.95
    resamples: int = 9999
    star_scheme: str = "10/5/1"
    deltas: tuple[float, ...] = ()
    tau: float = 1.1
    is_after_tau: bool = False
    claims: "PlannedLabels | None" = None
    page_seconds: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    metric_scores: "DataFrame | None" = None
    is_only_planned: bool = False
    # What an analysis has read of these rows, for all parts of the report. A context with other rows begins with nothing.
    already_read: dict[str, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    def rng(self, *parts: Any) -> "np.random.Generator":
        """Return the random generator of this protocol for ``parts``. The same parts give the same numbers."""
        from analysis.stats.seeds import seeded_generator

        return seeded_generator(self.seed, self.protocol, *parts)
