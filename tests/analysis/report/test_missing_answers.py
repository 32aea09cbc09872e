"""The report counts planned answers that are missing, and the methods say how many."""

import pytest

from analysis.report.build import build_report
from annotators.pages.record import record_page_answers
from studies.models import Question, Study
from studies.protocols import REGISTRY
from studies.services import lifecycle
from tests.builders import add_rating, add_spa, draft_study, launched
from tests.golden_site.drafts import SKIP
from tests.players import answered, claimed, form, open_page, submitted
from tests.samples import sample_draft

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


def report_of(study: Study) -> dict:
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return build_report(Study.objects.get(pk=study.pk), {"resamples": 99})


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_an_annotator_who_answers_everything_misses_nothing(slug):
    study = launched(sample_draft(slug))
    submitted(study, "p")
    missing = report_of(study)["missing_answers"]
    assert missing["given"] == missing["planned"] > 0 and (missing["skipped"], missing["not_given"]) == (0, 0)


def test_skipped_and_empty_answers_are_counted_by_section():
    study = draft_study(prompts=40, target_n=4, instructions="", consent="")
    add_spa(study, position=1, m=2)
    add_rating(study, position=2, m=2)
    Question.objects.filter(section__study=study, section__protocol="rating").update(required=False, skip_reasons=SKIP)
    study = launched(study)
    for person in "abc":
        submitted(study, person)
    assignment = claimed(study, "d")
    n = {"skipped": 0, "empty": 0}
    while assignment.submitted_at is None:
        _, page, asks = open_page(assignment)
        if page.section.position == 1:
            answered(assignment, page.key)
        else:
            first, *others = asks
            assert record_page_answers(assignment, page.key, form(**{f"{first}.skip": "cannot_judge"})).sent is None
            n["skipped"] += 1
            n["empty"] += len(others)
        assignment.refresh_from_db()
    report = report_of(study)
    spa, rating = report["missing_answers"]["sections"]
    assert (rating["skipped"], rating["not_given"]) == (n["skipped"], n["empty"]) and n["skipped"] and n["empty"]
    assert rating["planned"] == 4 * 2 * 3 and rating["given"] == 3 * 2 * 3 and spa["given"] == spa["planned"] == 4 * 4
    words = " ".join(report["methods"])
    assert (
        f"Of their 40 planned answers (without free texts), 6 (15 %) are missing: {n['skipped']} were skipped with a reason and"
        in words
    )
    assert (
        "More than 5 % are missing in these sections: 25 % in “Rating of each output (Likert or continuous), with 2 prompts”."
        in words
    )
    asked = "The section “SPA, after 2 examples”, which counts in the results, asked 4 questions."
    assert asked in report["methods"]
    kept, kept_paper = report["n"]["kept"], report["n"]["kept_paper"]
    assert f"{kept} remain after the rules that do not use outcomes: the recommended numbers are about them." in words
    assert f"{kept_paper} remain after all primary rules: the numbers as published are about them." in words
