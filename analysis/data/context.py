"""What the analysis of a protocol is made from and by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from .planned_labels import PlannedLabels


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisContext:
    """The live answers of those who submitted, and how they are analysed.

    ``rows``: an answer each (``analysis.data.frames``), on 0 to 1. ``is_kept`` marks the annotators of the recommended estimates, whom the
    rules that look at no outcome keep; ``is_kept_paper`` those of the paper's; ``kept:<rule>`` whom each rule would keep.
    ``sections``: the live sections of the protocol. ``tau`` is that of the rule about sums, ``is_after_tau`` whether it left anybody
    out. ``claims``: every planned label, where the analysis reads them.
    """

    protocol: str
    rows: "DataFrame"
    sections: Sequence[Any]
    seed: str
    level: float = 0.95
    resamples: int = 9999
    star_scheme: str = "10/5/1"
    tau: float = 1.1
    is_after_tau: bool = False
    claims: "PlannedLabels | None" = None

    def rng(self, *parts: Any) -> "np.random.Generator":
        """Random numbers of this protocol's own, the same for the same words."""
        from analysis.stats.seeds import generator

        return generator(self.seed, self.protocol, *parts)
