"""Whose opinion: declared groups of people and of prompts in a report."""

import pytest
from django.core.exceptions import ValidationError
from django.urls import reverse

from analysis.report.runs import run_analysis
from annotators.participation.simulate import record_simulated_answers
from studies.design.serialization import serialize_design
from studies.models import Study
from studies.models.fields import parse_groupings
from tests.analysis.protocols.answers import answer
from tests.analysis.report.reported import QUICK, closed, report, table
from tests.builders import add_choice, draft_study, launched, recruitment, spa_study, user

pytestmark = pytest.mark.django_db


def of_two_panels(first, second, **options):
    study = spa_study(user(), systems=("alpha", "beta"), target_n=24, compared_groups="panel; domain", **options)
    for percent, channel in ((first, "prolific"), (second, "open_link")):
        answer(study, 12, percent=percent, recruitment=recruitment(study, channel))
    return closed(study)


def test_people_split_is_a_result_of_its_own(client):
    study = of_two_panels(
        lambda person, x, y: 85 - person % 5 if x > y else 15 + person % 3,
        lambda person, x, y: 20 + person % 5 if x > y else 80 - person % 3,
    )
    run = run_analysis(study, QUICK, by=study.owner)
    (sentence,) = run.result["opinions"]["sentences"]
    assert sentence.startswith("People split on beta > alpha by panel (adjusted p < .001): Open link 0.2")
    assert run.result["answer"]["sentences"][-1] == "People split on beta > alpha by panel."
    assert "Bonferroni" not in table(run.result, "opinions")["note"]
    rows = [row for row in table(run.result, "opinions")["rows"] if row["by"] == "panel"]
    assert [row["group"] for row in rows] == ["Open link", "Prolific", "Open link less the others"]
    assert rows[0]["estimate"] < 0.5 < rows[1]["estimate"] and rows[0]["n"] == rows[1]["n"] == 12
    assert rows[2]["estimate"] == pytest.approx(rows[0]["estimate"] - rows[1]["estimate"]) and rows[2]["p"] < 0.001
    (unknown,) = [row for row in table(run.result, "opinions")["rows"] if row["by"] == "domain"]
    assert unknown["group"] == "each answer is about several prompts" and unknown["estimate"] is None
    assert len(table(run.result, "opinions")["columns"]) <= 7
    client.force_login(study.owner)
    page = client.get(reverse("analysis", args=[study.pk, run.number])).content.decode()
    assert page.index('id="items"') < page.index('id="opinions"') < page.index('id="all"')
    assert "People split on beta &gt; alpha by panel" in page


def test_groups_that_agree_leave_it_open(client):
    study = of_two_panels(*[lambda person, x, y: 60 + person % 7 if x > y else 38 + person % 5] * 2)
    run = run_analysis(study, QUICK, by=study.owner)
    assert run.result["opinions"] == {"sentences": [], "n_compared": 1}
    assert not [sentence for sentence in run.result["answer"]["sentences"] if "split" in sentence]
    client.force_login(study.owner)
    page = client.get(reverse("analysis", args=[study.pk, run.number])).content.decode()
    assert "It remains open whether the groups differ: none of 1 test shows it." in page


def test_groups_of_prompts_are_read_from_their_columns():
    draft = draft_study(
        owner=user(),
        systems=("alpha", "beta"),
        prompts=12,
        target_n=12,
        compared_groups="domain; length; attribute: kind",
    )
    add_choice(draft, m=6, stopping="none", strategy="any")
    for number, prompt in enumerate(draft.prompts.order_by("key")):
        prompt.domain = "news" if number % 2 else "tales"
        prompt.text = "Write. " * (1 + number)
        prompt.attributes = {"kind": "old"} if number < 3 else {}
        prompt.save()
    study = launched(draft)
    record_simulated_answers(study, 12, {"alpha": 0.0, "beta": 0.7})
    study.assignments.update(origin="live")
    rows = table(report(closed(study)), "opinions")["rows"]
    groups = {(row["by"], row["group"].partition(" (")[0]) for row in rows}
    assert {("domain", "news"), ("domain", "tales"), ("length", "longer"), ("length", "shorter")} <= groups
    assert ("attribute: kind", "old") in groups
    shown = [row for row in rows if row["by"] in ("domain", "length")]
    assert all(row["estimate"] is not None for row in shown)
    # Holm over the tests of both groupings: no adjusted p is below that of its own test.
    assert sum(row["p"] is not None for row in rows) == 2


def test_a_design_that_declares_no_groups_has_no_line_and_no_opinions():
    study = spa_study(user(), target_n=12)
    assert "compared_groups" not in serialize_design(study)["study"]
    answer(study, 12, percent=lambda person, x, y: 60 + person if x > y else 38)
    result = report(closed(study))
    assert "opinions" not in result and not [one for one in result["tables"] if one["name"] == "opinions"]


def test_hidden_outcomes_have_no_opinions():
    study = spa_study(user(), target_n=12, compared_groups="panel")
    answer(study, 12, percent=lambda person, x, y: 60 + person if x > y else 38)
    assert "opinions" not in report(study)


@pytest.mark.parametrize("text", ["age", "answer:", "domain, panel", "answer: ;", "domain; domain of life"])
def test_what_is_no_grouping_is_refused(text):
    with pytest.raises(ValidationError, match="This is not a list of groups"):
        Study._meta.get_field("compared_groups").clean(text, None)


def test_groupings_are_read_once_each():
    assert Study._meta.get_field("compared_groups").clean("panel; answer: fluent;sample: Age, years", None)
    assert parse_groupings("panel; answer: fluent;panel") == [("panel", ""), ("answer", "fluent")]
