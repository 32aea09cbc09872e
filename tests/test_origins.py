"""Human or machine on the demo's fables, under the template of that experiment. ``python -m tests.origins`` plays it with hundreds."""

import pytest

from analysis.report.build import build_report
from studies.imports.tables import Options, import_stimuli_file
from studies.models import Output, Study
from studies.services import lifecycle
from tests import origins
from tests.builders import launched, user


@pytest.mark.slow
@pytest.mark.django_db
def test_texts_of_known_origin_come_out_as_what_they_are(monkeypatch, same_orders, tmp_path):
    # Far apart, but for the last machine, whose texts nobody can tell from a person's: then every answer is certain.
    monkeypatch.setattr(origins, "SENSITIVITIES", {"order-1": 20.0, "order-2": 20.0, "order-3": 20.0})
    monkeypatch.setattr(origins, "CUT", 10.0)
    study = origins.draft(user(), 8)
    import_stimuli_file(study, origins.write_import_file(tmp_path / "fables.jsonl"), options=Options(), by=None)
    assert Output.objects.filter(system__study=study).count() == 24 * 5
    study = launched(study)
    origins.play(study, 8)
    lifecycle.start_closing(study, by=None), lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    assert not result["problems"], result["problems"]
    found = {machine: (paper, row) for machine, paper, row in origins.found_in(result)}
    assert list(found) == ["order-1", "order-2", "order-3", "order-5"]
    for machine, (paper, row) in found.items():
        assert row["n"] == paper["n"] == 2 and paper["n_rows"] == 10 and paper["domain"] == "stories"
        # Two or three of an annotator's five texts are human.
        assert 0.4 <= paper["human"] <= 0.6 if machine != "order-5" else paper["human"] == 1
        assert paper["accuracy"] == 1 if machine != "order-5" else 0.4 <= paper["accuracy"] <= 0.6
