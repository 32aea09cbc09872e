"""A comparison that names no estimand is about the one that its protocol lists first, in the design, the admin and the analysis."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.protocols import REGISTRY as ANALYSES
from studies.models import Contrast
from studies.protocols import REGISTRY
from tests.admin_pages import study_url
from tests.builders import add_choice, add_marks, add_ranking, add_rating, add_relative, add_spa, draft_study, user

pytestmark = pytest.mark.django_db
ADDED = {
    "marks": add_marks,
    "ranking": add_ranking,
    "rating": add_rating,
    "relative": add_relative,
    "spa": add_spa,
    "two_choice": lambda study, **options: add_choice(study, stopping="none", strategy="any", **options),
}


def claims_of(slug, section) -> dict[str, int]:
    return {name: len(claims) for name, claims in ANALYSES[slug].planned_claims([section]).items() if claims}


def drafted(slug, estimand=""):
    study = draft_study(systems=("alpha", "beta"), prompts=4, instructions="")
    section = ADDED[slug](study, position=1, m=2)
    study.contrasts.all().delete()
    beta, alpha = study.systems.get(name="beta"), study.systems.get(name="alpha")
    Contrast.objects.create(study=study, x=beta, y=alpha, estimand=estimand)
    return section


@pytest.mark.parametrize("slug", ADDED)
def test_an_empty_estimand_is_the_default_and_the_default_is_listed_first(slug):
    default = REGISTRY[slug].default_estimand(drafted(slug))
    assert default == next(iter(REGISTRY[slug].estimands(None)))
    assert claims_of(slug, drafted(slug)) == claims_of(slug, drafted(slug, default)) != {}


def test_ratings_are_about_superiority_and_marks_without_a_score_about_penalties():
    assert next(iter(REGISTRY["rating"].estimands(None))) == "superiority"
    assert claims_of("rating", drafted("rating")) == {"rating.superiority": 1}
    section = drafted("marks")
    assert REGISTRY["marks"].default_estimand(section) == "score" and "marks.score" in claims_of("marks", section)
    section.questions.filter(key="score").delete()
    assert REGISTRY["marks"].default_estimand(section) == "penalty"
    assert claims_of("marks", section) == {"marks.penalty": 1}


def test_protocols_without_estimands_have_no_default():
    assert REGISTRY["survey"].default_estimand(None) == ""


def test_the_form_of_a_comparison_names_the_default(client):
    client.force_login(user("owner", is_superuser=True))
    html = client.get(study_url(drafted("rating").study)).content.decode()
    assert ">superiority (default)<" in html


def test_comparisons_are_read_once_for_all_questions_of_a_section():
    section = drafted("rating")
    question = section.questions.get()
    for number in range(4):
        question.pk, question.key, question.position = None, f"more{number}", 10 + number
        question._state.adding = True
        question.save()
    with CaptureQueriesContext(connection) as seen:
        assert claims_of("rating", section) == {"rating.superiority": 5}
    assert sum('FROM "studies_contrast"' in query["sql"] for query in seen) == 1
