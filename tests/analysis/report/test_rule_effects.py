"""A report shows what each exclusion rule changes, in every protocol."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import QuerySet

from analysis.protocols import REGISTRY, ProtocolAnalysis
from analysis.report import build, page
from analysis.report.build import analysis_contexts, build_report, validate_parameters
from analysis.report.report_data import read_report_data
from analysis.stats.results import json_safe
from tests.analysis.protocols.answers import answer
from tests.analysis.report.compared_studies import PROTOCOLS, ROBOTS, WITHOUT, rated, simulated
from tests.analysis.report.reported import report, table
from tests.builders import spa_study

pytestmark = pytest.mark.django_db


def hurry(study, n):
    """Of those who submitted, the first ``n`` take a second and the others twenty minutes."""
    for number, assignment in enumerate(study.assignments.exclude(submitted_at=None).order_by("pk")):
        taken = timedelta(seconds=1 if number < n else 1200)
        study.assignments.filter(pk=assignment.pk).update(started_at=assignment.submitted_at - taken)


def test_what_each_rule_changes_is_what_the_report_says_with_it_and_without():
    study = rated(rules=[("too_fast", "sensitivity")])
    hurry(study, 3)
    result = report(study)
    (row,) = [one for one in table(result, "rule_effects")["rows"] if one["rule"] == "too fast"]
    everybody = result["blocks"][0]["estimates"][0]
    assert row["before"] == everybody["estimate"] and row["n"] == "14 → 11"
    QuerySet(study.exclusion_rules.model).filter(study=study).update(role="primary")
    alone = report(study)
    kept = alone["blocks"][0]["estimates"][0]
    assert row["after"] == kept["estimate"] != row["before"]
    assert row["change"] == pytest.approx(kept["estimate"] - everybody["estimate"])
    (again,) = table(alone, "rule_effects")["rows"]
    assert again == row
    assert page.REASONS.index("rule_effects") < page.REASONS.index("reliability")


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "spa"] + list(WITHOUT))
def test_every_protocol_shows_what_a_rule_changes(protocol):
    add = (PROTOCOLS | WITHOUT)[protocol]
    study = simulated(add, rules=[("too_fast", "sensitivity")])
    hurry(study, 1)
    result = build_report(study, ROBOTS)
    assert not result["problems"]
    rows = table(result, "rule_effects")["rows"]
    names = {one["contrast"] for one in result["conclusions"]}
    assert len(rows) == len(names) > 0
    for row in rows:
        assert row["reason"] or (row["change"] == pytest.approx(row["after"] - row["before"]) and "→" in row["n"])
    assert any(row["reason"] for row in rows) == (protocol == "two_choice_anytime")


def test_while_outcomes_are_hidden_no_rule_shows_what_it_changes(monkeypatch):
    study = spa_study(target_n=12, rules=[("too_fast", {})])
    answer(study, 10, percent=lambda person, x, y: 90)
    monkeypatch.setattr(build, "rule_effects", None)
    assert "rule_effects" not in {one["name"] for one in report(study)["tables"]}


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "spa"])
@pytest.mark.parametrize(("rules", "reads"), [((), 1), ([("too_fast", "sensitivity")], 2)])
def test_answers_are_read_once_for_all_parts_of_a_report_and_once_for_all_rules(protocol, rules, reads, monkeypatch):
    study = simulated(PROTOCOLS[protocol], rules=rules)
    hurry(study, 1)
    analysis = REGISTRY[study.sections.get(purpose="live").protocol]
    calls, read = [], type(analysis).read
    monkeypatch.setattr(type(analysis), "read", lambda self, context: calls.append(1) or read(self, context))
    result = build_report(study, ROBOTS)
    assert not result["problems"] and ("rule_effects" in {one["name"] for one in result["tables"]}) == bool(rules)
    assert len(calls) == reads


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "spa"])
def test_answers_that_are_read_once_give_what_reading_for_each_rule_gives(protocol):
    study = simulated(PROTOCOLS[protocol], rules=[("too_fast", "sensitivity")])
    hurry(study, 5)
    data = read_report_data(study, ROBOTS["origins"])
    (context,) = analysis_contexts(data, validate_parameters(ROBOTS, study), "0", [])
    analysis, columns = REGISTRY[context.protocol], ("", "kept:too_fast")
    once, each = (
        [
            {name: [(one.key, json_safe(estimate)) for one, estimate in pairs] for name, pairs in compared.items()}
            for compared in compare(analysis, replace(context, is_only_planned=True), columns)
        ]
        for compare in (type(analysis).compare_each_kept, ProtocolAnalysis.compare_each_kept)
    )
    assert once == each and once[0] != once[1]
