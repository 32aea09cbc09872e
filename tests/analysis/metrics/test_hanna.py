"""A part of HANNA, brought in as users do: labels by place instead of person, judges by question, metrics of outputs."""

import statistics

import pytest

from analysis.metrics.calibrated.options import CalibrationOptions
from analysis.metrics.calibrated.run import calibrate
from analysis.metrics.calibrated.views import UNKNOWN_PEOPLE, main_sentences
from tests import hanna
from tests.builders import user

pytestmark = [pytest.mark.shared, pytest.mark.django_db]
SYSTEMS = ("Human", "GPT", "Fusion")
N_PROMPTS = 16


@pytest.mark.slow
def test_judges_of_real_stories_are_compared_with_people_who_are_unknown(shared, tmp_path, monkeypatch):
    monkeypatch.setattr(hanna, "HANNA", shared / "hanna_judges.csv.gz")
    monkeypatch.setattr(hanna, "FAMILIES", {"beluga_13b": "Llama"})
    rows = [
        row
        for row in hanna.read_rows()
        if row["criterion"] == "coherence" and row["system"] in SYSTEMS and int(row["prompt"]) < N_PROMPTS
    ]
    study = hanna.make_study(user(), rows, tmp_path, criteria=("coherence",))
    hanna.store_scores(study, rows)
    options = CalibrationOptions(are_people_known=False)
    (stored,) = calibrate(study, options, study.owner)
    result = stored.result
    assert (result["n_labels"], result["n_items"], result["used"]) == (
        144,
        48,
        [f"beluga_13b_p{n} 2024" for n in range(1, 5)],
    )
    assert UNKNOWN_PEOPLE in main_sentences(result, stored.options)
    people = {}
    for row in rows:
        people.setdefault(row["system"], []).extend((float(row[place]) - 1) / 4 for place in hanna.PEOPLE)
    for row in result["systems"]:
        own = people[row["system"]]
        assert row["result"]["human"]["estimate"] == pytest.approx(sum(own) / len(own))
        assert row["result"]["human"]["unit"] == "prompt"
    labels = [sum(float(row[place]) for place in hanna.PEOPLE) / 3 for row in rows]
    for judge in (one for one in result["judges"] if one["kind"] == "judge"):
        # Means of runs outside of 1 to 5 were cut.
        scores = [min(5.0, max(1.0, float(row[judge["name"].split()[0]]))) for row in rows]
        assert judge["correlation"] == pytest.approx(statistics.correlation(labels, scores), abs=1e-3)
