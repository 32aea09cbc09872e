"""A margin of half a scale or more, and a claim by a margin that contradicts its comparison, are refused by the form, by a bundle, by
the database and before the launch."""

import json

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse

from studies.design.checklist import find_design_problems
from studies.design.comparisons import hypothesis_problem, planned_claim_sentences, too_wide_margin_problem
from studies.design.serialization import LATER_CONTRAST_FIELDS, serialize_design
from studies.design.subjects import numbered_name
from studies.imports.bundle import BundleRefused
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.models import Contrast, Question, Study
from studies.protocols import REGISTRY
from tests.admin_pages import changed, form_of, study_url
from tests.builders import add_section, draft_study, spa_draft, user

pytestmark = pytest.mark.django_db
MESSAGE = (
    "The margin must be below 0.5, half of the scale in section 2 (SPA). A wider one makes nearly every result equivalent. "
    "Enter a smaller margin."
)
LIMITS = [
    ("spa", "", 0.5),
    ("two_choice", "", 0.5),
    ("ranking", "", 0.5),
    ("relative", "", 2),
    ("rating", "", 0.5),
    ("rating", "superiority", 0.5),
    ("rating", "difference", 2),
    ("rating", "utility", 0.5),
    ("humanlike", "accuracy", 0.5),
    ("humanlike", "", None),
    ("humanlike", "sensitivity", None),
    ("humanlike", "criterion", None),
    ("marks", "", 50),
    ("marks", "score", 50),
    ("marks", "penalty", None),
    ("best_worst", "", None),
]


def message(section, margin, estimand, criterion="") -> str:
    problem = too_wide_margin_problem(margin, estimand, criterion, [(section, list(section.questions.all()))])
    return problem.text if problem else ""


@pytest.mark.parametrize(("slug", "estimand", "limit"), LIMITS)
def test_the_limit_is_half_of_the_scale_of_what_is_estimated(slug, estimand, limit):
    section = add_section(draft_study(), slug)
    assert message(section, None, estimand) == ""
    if limit is None:
        assert message(section, 1000.0, estimand) == ""
    else:
        assert message(section, 0.99 * limit, estimand) == ""
        assert f"below {limit:g}, half of the scale in section 1" in message(section, limit, estimand)


def test_every_estimand_of_every_protocol_is_in_the_list():
    sections = {slug: add_section(draft_study(), slug) for slug in REGISTRY if slug != "survey"}
    estimands = {(slug, key) for slug, section in sections.items() for key in REGISTRY[slug].estimands(section)}
    defaults = {(slug, next(iter(REGISTRY[slug].estimands(section)))) for slug, section in sections.items()}
    listed = {(slug, estimand) for slug, estimand, _ in LIMITS}
    assert estimands <= listed | defaults and {(slug, "") for slug in sections} <= listed


def test_only_questions_of_the_criterion_and_sections_with_the_estimand_count():
    study = draft_study()
    section = add_section(study, "rating")
    first = section.questions.get()
    Question.objects.create(
        section=section,
        position=9,
        key="long",
        criterion="style",
        text="?",
        scale={"kind": "continuous", "maximum": 20},
    )
    assert (
        first.criterion == ""
        and message(section, 2.5, "difference")
        and not message(section, 2.5, "difference", "style")
    )
    assert not message(add_section(study, "spa", position=2), 2.5, "difference")


def with_margin(margin) -> Study:
    study = spa_draft(owner=user())
    first = study.contrasts.first()
    study.contrasts.filter(pk=first.pk).update(margin=margin, section=study.sections.get(protocol="spa"))
    return Study.objects.get(pk=study.pk)


def test_the_checklist_refuses_it():
    study = with_margin(0.6)
    first = study.contrasts.first()
    (problem,) = [one for one in find_design_problems(study) if "margin" in one.text]
    assert problem.text == f"{first}: {MESSAGE}" and problem.is_blocking and problem.field == "contrasts"
    assert not [one for one in find_design_problems(with_margin(0.4)) if "margin" in one.text]


def test_a_bundle_with_it_is_refused():
    value = json.loads(bundle_text(with_margin(0.4)))
    value["contrasts"][0]["margin"] = 0.6
    with pytest.raises(BundleRefused) as refused:
        create_draft_from_bundle(value, user())
    assert refused.value.problems == [f"contrasts[0].margin: {MESSAGE}"]


@pytest.mark.slow
def test_the_form_refuses_it(client):
    study = with_margin(0.4)
    client.force_login(study.owner)
    data = changed(form_of(client.get(study_url(study)), "study_form"), **{"contrasts-0-margin": "0.6"})
    page = client.post(study_url(study), data)
    assert page.status_code == 200 and MESSAGE in page.content.decode()
    assert study.contrasts.first().margin == 0.4


NI, SUPERIORITY = Contrast.Hypothesis.NONINFERIORITY, Contrast.Hypothesis.SUPERIORITY_BY_MARGIN
DIRECTIONS = [
    ("spa", "", 0.5, ">"),
    ("two_choice", "", 0.5, ">"),
    ("ranking", "", 0.5, ">"),
    ("relative", "", 0.0, ">"),
    ("best_worst", "", 0.0, ">"),
    ("rating", "", 0.5, ">"),
    ("rating", "superiority", 0.5, ">"),
    ("rating", "difference", 0.0, ">"),
    ("rating", "utility", 0.0, ">"),
    ("marks", "", 0.0, ">"),
    ("marks", "score", 0.0, ">"),
    ("marks", "penalty", 0.0, ">"),
    ("humanlike", "", None, ""),
    ("humanlike", "accuracy", None, ""),
    ("humanlike", "sensitivity", None, ""),
    ("humanlike", "criterion", None, ""),
]


def problem_of(sections=(), **columns):
    given = {
        "hypothesis": NI, "margin": 0.1, "has_systems": True, "expected": "", "estimand": "", "criterion": "",
    } | columns  # fmt: skip
    found = hypothesis_problem(sections=sections, **given)
    return found and (found[0], found[1].text)


def with_questions(*sections):
    return [(section, list(section.questions.all())) for section in sections]


@pytest.mark.parametrize(("slug", "estimand", "null", "sign"), DIRECTIONS)
def test_each_estimand_has_a_direction_or_allows_no_claim_by_a_margin(slug, estimand, null, sign):
    section = add_section(draft_study(), slug, settings={"stopping": "none"} if slug == "two_choice" else {})
    direction = REGISTRY[slug].direction(estimand, list(section.questions.all()))
    if null is None:
        assert direction is None
        column, text = problem_of(with_questions(section), estimand=estimand)
        assert column == "hypothesis" and text.startswith(
            f"Section {numbered_name(section)} does not say in which direction x is better."
        )
    else:
        assert (direction.null, direction.better_sign) == (null, sign)
        assert problem_of(with_questions(section), estimand=estimand, expected=sign) is None
        column, text = problem_of(with_questions(section), estimand=estimand, expected="<")
        assert column == "expected" and text.startswith(
            f"In section {numbered_name(section)} this expected result means that x is worse"
        )


def test_every_estimand_has_its_direction_in_the_list():
    sections = {slug: add_section(draft_study(), slug) for slug in REGISTRY if slug != "survey"}
    estimands = {(slug, key) for slug, section in sections.items() for key in REGISTRY[slug].estimands(section)}
    defaults = {(slug, next(iter(REGISTRY[slug].estimands(section)))) for slug, section in sections.items()}
    assert estimands <= {(slug, estimand) for slug, estimand, _, _ in DIRECTIONS} | defaults


def test_a_rating_can_say_that_lower_is_better():
    section = add_section(draft_study(), "rating")
    question = section.questions.get()
    question.scale |= {"is_lower_better": True}
    question.save()
    for estimand in ("", "superiority", "difference"):
        assert problem_of(with_questions(section), estimand=estimand, expected="<") is None
        assert problem_of(with_questions(section), estimand=estimand, expected=">")[0] == "expected"
    assert problem_of(with_questions(section), estimand="utility")[0] == "hypothesis"
    Question.objects.create(section=section, position=9, key="b", criterion="style", text="?", scale={"kind": "likert"})
    assert problem_of(with_questions(section))[0] == "hypothesis"
    assert problem_of(with_questions(section), criterion="style", expected=">") is None


def test_a_claim_by_a_margin_needs_a_margin_and_systems_and_no_equivalence():
    assert problem_of(hypothesis="difference", margin=None, has_systems=False, expected="~") is None
    for hypothesis in (NI, SUPERIORITY):
        assert problem_of(hypothesis=hypothesis) is None
        assert problem_of(hypothesis=hypothesis, margin=None)[0] == "margin"
        assert problem_of(hypothesis=hypothesis, has_systems=False)[0] == "hypothesis"
        assert problem_of(hypothesis=hypothesis, expected="~")[0] == "expected"


@pytest.mark.parametrize("hypothesis", [NI, SUPERIORITY])
@pytest.mark.parametrize(
    "columns", [{"margin": None}, {"expected": "~"}, {"x": None, "y": None}, {"hypothesis": "inferiority"}]
)
def test_the_database_refuses_it(hypothesis, columns):
    study = spa_draft(owner=user())
    first = study.contrasts.filter(pk=study.contrasts.first().pk)
    first.update(hypothesis=hypothesis, margin=0.1, expected=">")
    with pytest.raises(IntegrityError), transaction.atomic():
        first.update(**columns)


@pytest.mark.slow
def test_the_form_names_the_field_and_the_next_step(client):
    study = with_margin(None)
    client.force_login(study.owner)
    form = form_of(client.get(study_url(study)), "study_form")
    page = client.post(study_url(study), changed(form, **{"contrasts-0-hypothesis": "noninferiority"}))
    text = page.content.decode()
    assert "This hypothesis needs a margin. Enter one, or choose the hypothesis “x and y differ”." in text
    assert "is violated" not in text
    client.post(
        study_url(study),
        changed(form, **{"contrasts-0-hypothesis": "noninferiority", "contrasts-0-margin": "0.05"}),
    )
    first = study.contrasts.first()
    assert (first.hypothesis, first.margin) == (NI, 0.05)
    form = form_of(client.get(study_url(study)), "study_form")
    page = client.post(study_url(study), changed(form, **{"contrasts-0-expected": "<"}))
    assert "this expected result means that x is worse" in page.content.decode()
    assert study.contrasts.first().expected == first.expected


def test_the_launch_page_says_what_the_report_will_claim(client):
    study = draft_study(owner=user(), systems=("alpha", "beta"))
    x, y = study.systems.get(name="beta"), study.systems.get(name="alpha")
    add_section(study, "ranking", position=1)
    rating = add_section(study, "rating", position=2)
    first = Contrast.objects.create(study=study, x=x, y=y, hypothesis=NI, margin=0.05)
    assert planned_claim_sentences(study) == [
        "Section 1 (Ranking of a prompt's outputs, ties allowed): the report will claim “beta is not worse than alpha by more than 5 percentage points” if the whole 95 % interval "
        "is above 45 %.",
        "Section 2 (Rating of each output): the report will claim “beta is not worse than alpha by more than 5 percentage points” if the whole 95 % interval "
        "is above 45 %.",
    ]
    Contrast.objects.create(
        study=study, x=x, y=y, section=rating, estimand="difference", hypothesis=SUPERIORITY, margin=0.5, level=0.01
    )
    assert planned_claim_sentences(study)[2] == (
        "Section 2 (Rating of each output): the report will claim “beta is better than alpha by more than 0.5” if the whole 99 % simultaneous interval is above 0.5."
    )
    question = rating.questions.get()
    question.scale |= {"is_lower_better": True}
    question.save()
    assert [sentence.partition("interval is ")[2] for sentence in planned_claim_sentences(study)] == [
        "above 45 %.", "below 55 %.", "below −0.5.",
    ]  # fmt: skip
    first.hypothesis = "difference"
    first.save()
    client.force_login(study.owner)
    page = client.get(reverse("study_launch", args=[study.pk])).content.decode()
    assert "What the report will claim" in page and "is better than alpha by more than 0.5” if the whole" in page
    study.contrasts.update(hypothesis="difference")
    assert "What the report will claim" not in client.get(reverse("study_launch", args=[study.pk])).content.decode()


def test_the_design_and_bundles_hold_the_hypothesis_only_if_it_is_declared():
    study = with_margin(0.1)
    (before,) = [row for row in serialize_design(study)["contrasts"] if row["margin"]]
    assert "hypothesis" not in before
    old = bundle_text(study)
    study.contrasts.filter(margin=0.1).update(hypothesis=SUPERIORITY)
    (declared,) = [row for row in serialize_design(study)["contrasts"] if row["margin"]]
    assert declared == before | {"hypothesis": "superiority_by_margin"}
    again = create_draft_from_bundle(json.loads(bundle_text(study)), user("second"))
    assert [one.hypothesis for one in again.contrasts.filter(margin=0.1)] == [SUPERIORITY]
    assert LATER_CONTRAST_FIELDS["hypothesis"] == "difference" and '"hypothesis"' not in old
    earlier = create_draft_from_bundle(json.loads(old), user("third"))
    assert set(earlier.contrasts.values_list("hypothesis", flat=True)) == {"difference"}
