"""Public priors: each has a source, fits the facts it was converted from, and loads no numpy."""

import math
import subprocess
import sys

import pytest

from analysis.stats.planning.closed_forms import components
from analysis.stats.planning.inputs import StudySize, Target
from analysis.stats.planning.priors import DEFAULT_PRIOR, OBSERVED_DIFFERENCES, PRIORS, prior_of

SIZE = StudySize(protocol="two_choice", people=70, prompts=500, prompts_each=70)
MEASURED = [prior for prior in PRIORS if prior is not DEFAULT_PRIOR]


def test_every_prior_and_every_difference_has_a_source_and_a_conversion():
    for one in (*PRIORS, *OBSERVED_DIFFERENCES):
        assert one.source and one.conversion.endswith(".")
    assert all(prior.answers and prior.people and prior.prompts for prior in MEASURED)
    assert len({prior.key for prior in PRIORS}) == len(PRIORS)
    assert all(one.probability >= 0.5 or one.is_about_answers for one in OBSERVED_DIFFERENCES)


def test_the_default_is_the_quadratic_mean_of_the_data_sets():
    for name in ("sd_people", "sd_prompts"):
        mean = math.sqrt(sum(getattr(prior.variation, name) ** 2 for prior in MEASURED) / len(MEASURED))
        assert getattr(DEFAULT_PRIOR.variation, name) == pytest.approx(mean, abs=0.05)


def test_a_prior_of_choices_reproduces_the_components_of_its_labels():
    # Linear mixed model of the 5,000 labels (lme4, REML): .0038 over people and .0595 over pairs.
    found = components(SIZE, Target(difference=0.597), prior_of("choices_neighbours").variation)
    assert found.people == pytest.approx(0.0038, rel=0.1)
    assert found.prompts == pytest.approx(0.0595, rel=0.1)


def test_an_unknown_prior_is_refused_with_the_known_keys():
    with pytest.raises(ValueError, match="'other' is not one of typical, choices_neighbours"):
        prior_of("other")


def test_priors_load_no_numpy():
    code = "import sys, analysis.stats.planning.priors; assert not {'numpy', 'scipy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
