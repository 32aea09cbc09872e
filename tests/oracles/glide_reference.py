"""Reference numbers of GLIDE (glide-py) for prediction-powered means. No test needs it: they read tests/golden/glide_reference.json.

GLIDE needs Python 3.12, so it is no dependency of this project. In an environment of Python 3.12 with glide-py, from the root of the repository:
``python tests/oracles/glide_reference.py``.
"""

import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from glide.estimators import (
    ClusteredPPIMeanEstimator,
    MultiPPIMeanEstimator,
    PPIMeanEstimator,
    StratifiedPPIMeanEstimator,
)

PLACE = Path(__file__).resolve().parents[1] / "golden" / "glide_reference.json"


def numbers(result) -> dict:
    """The estimate, its standard error and the effective number of labels."""
    interval = result.confidence_interval
    return {
        "estimate": float(interval.mean),
        "se": float(np.sqrt(interval.var)),
        "effective_sample_size": int(result.effective_sample_size),
    }


def hidden(values: np.ndarray, is_labelled: np.ndarray) -> np.ndarray:
    """The labels, with NaN where there is none."""
    return np.where(is_labelled, values, np.nan)


def cases() -> dict:
    """Three data sets: independent items with two judges, clusters of five items, and two strata with equal shares of labels."""
    rng = np.random.default_rng(27)
    quality = rng.normal(3, 1, 240)
    human = np.round(np.clip(quality + rng.normal(0, 0.5, 240), 1, 5), 3)
    one, two = (np.round(scale * quality + rng.normal(0, noise, 240), 3) for scale, noise in ((1, 0.5), (10, 12)))
    first = np.arange(240) < 60
    clusters = np.repeat(np.arange(48), 5)
    shift = np.round(rng.normal(0, 0.8, 48), 3)[clusters]
    strata = np.repeat([0, 1], [80, 160])
    of_strata = np.r_[np.arange(80) < 20, np.arange(160) < 40]
    labels = hidden(human, first)
    of_clusters = hidden(human + shift, first)
    in_strata = hidden(human + strata, of_strata)
    judged = one + shift
    return {
        "data": {
            "human": human.tolist(),
            "judges": [one.tolist(), two.tolist()],
            "cluster_shift": shift.tolist(),
            "n_labelled": 60,
            "strata": strata.tolist(),
            "is_labelled_in_strata": of_strata.tolist(),
        },
        "ppi": numbers(PPIMeanEstimator().estimate(labels, one, power_tuning=False)),
        "ppi_tuned": numbers(PPIMeanEstimator().estimate(labels, one)),
        "multi_tuned": numbers(MultiPPIMeanEstimator().estimate(labels, np.stack([one, two], axis=1))),
        "clustered": numbers(ClusteredPPIMeanEstimator().estimate(of_clusters, judged, clusters, power_tuning=False)),
        "clustered_tuned": numbers(ClusteredPPIMeanEstimator().estimate(of_clusters, judged, clusters)),
        "stratified": numbers(StratifiedPPIMeanEstimator().estimate(in_strata, one, strata, power_tuning=False)),
        "stratified_tuned": numbers(StratifiedPPIMeanEstimator().estimate(in_strata, one, strata)),
    }


def main() -> None:
    """Write the numbers, with their source."""
    source = (
        f"python tests/oracles/glide_reference.py on {datetime.now(UTC):%Y-%m-%d}: glide-py {version('glide-py')}, "
        f"Python {sys.version.split()[0]}, numpy {version('numpy')}, scipy {version('scipy')}. Data made up by the script."
    )
    PLACE.write_text(json.dumps({"source": source, **cases()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
