"""A margin of half a scale or more is refused, in the same words, by the form, by a bundle and before the launch."""

import json

import pytest

from studies.design.checklist import find_design_problems
from studies.design.margins import too_wide_margin_problem
from studies.imports.bundle.reading import create_draft_from_bundle
from studies.imports.bundle.schema import BundleRefused
from studies.imports.bundle.writing import bundle_text
from studies.models import Question, Study
from studies.protocols import REGISTRY
from tests.admin_pages import changed, form_of, study_url
from tests.builders import add_section, draft_study, spa_draft, user

pytestmark = pytest.mark.django_db
MESSAGE = (
    "The margin must be below 0.5, half of the scale in section 2. A wider one makes nearly every result equivalent. "
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


def test_the_form_refuses_it(client):
    study = with_margin(0.4)
    client.force_login(study.owner)
    data = changed(form_of(client.get(study_url(study)), "study_form"), **{"contrasts-0-margin": "0.6"})
    page = client.post(study_url(study), data)
    assert page.status_code == 200 and MESSAGE in page.content.decode()
    assert study.contrasts.first().margin == 0.4
