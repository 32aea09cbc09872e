"""A planned comparison declares what its result is about, as a part of the design; designs from before it keep their hash."""

import json

import pytest

from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle import create_draft_from_bundle, serialize_bundle
from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template
from studies.models import Contrast, Design
from studies.models.guards import StudyFrozen
from studies.services import questions
from studies.services.copying import clone_study
from tests.admin_pages import study_url
from tests.builders import add_choice, add_ranking, draft_study, launched, spa_draft, user, warnings_of

pytestmark = pytest.mark.django_db
BOTH, PEOPLE = Contrast.Population.PEOPLE_AND_PROMPTS, Contrast.Population.PEOPLE


def lines(study) -> list[dict]:
    return serialize_design(study)["contrasts"]


def test_only_a_declared_population_is_in_the_design():
    study = spa_draft(prompts=6)
    before = serialize_design(study)
    assert not any("population" in line for line in before["contrasts"])
    first = study.contrasts.first()
    Contrast.objects.filter(pk=first.pk).update(population=PEOPLE)
    assert [line.get("population") for line in lines(study)].count("people") == 1
    assert sha256_of(canonical_json(before)) != sha256_of(canonical_json(serialize_design(study)))
    Contrast.objects.filter(pk=first.pk).update(population="")
    assert serialize_design(study) == before


def test_a_launch_freezes_it():
    study = spa_draft(prompts=6)
    study.contrasts.update(population=BOTH)
    study = launched(study)
    frozen = json.loads(Design.objects.get(study=study).canonical)["contrasts"]
    assert {line["population"] for line in frozen} == {"people_and_prompts"}
    with pytest.raises(StudyFrozen):
        study.contrasts.update(population=PEOPLE)


def test_copies_and_bundles_keep_it():
    owner = user("owner")
    study = spa_draft(prompts=6, owner=owner)
    first = study.contrasts.first()
    Contrast.objects.filter(pk=first.pk).update(population=PEOPLE)
    for copy in (clone_study(study, owner), create_draft_from_bundle(serialize_bundle(study), owner)):
        assert sorted(copy.contrasts.values_list("population", flat=True)) == ["", "people"]
        assert lines(copy) == lines(study)


def test_generated_comparisons_and_templates_declare_what_their_protocol_can_show():
    study = spa_draft(prompts=6)
    study.contrasts.all().delete()
    section = study.sections.get(protocol="spa")
    pairs = questions.select_system_pairs(section, "neighbours")
    questions.add_missing_questions(section, pairs, "{x} or {y}?", by=None, with_contrasts=True)
    assert set(study.contrasts.values_list("population", flat=True)) == {PEOPLE}
    owner = user("owner")
    for template in STUDY_TEMPLATES:
        draft = create_draft_from_template(template, owner)
        wanted = PEOPLE if draft.sections.filter(protocol="spa").exists() else BOTH
        assert {line.get("population") for line in lines(draft)} == {wanted}, template.slug


def test_a_new_row_of_the_page_declares_people_and_prompts_and_an_earlier_one_stays(client):
    owner = user("owner", is_superuser=True)
    client.force_login(owner)
    study = spa_draft(prompts=6, owner=owner)
    form = client.get(study_url(study) + "?rows=1").context["inline_admin_formsets"]
    contrasts = next(one.formset for one in form if one.formset.model is Contrast)
    assert [row["population"].value() for row in contrasts.forms] == ["", "", "people_and_prompts"]
    assert contrasts.empty_form["population"].value() == "people_and_prompts"
    assert "five prompts or more" in contrasts.forms[0]["population"].help_text


# The checklist


def ranking_of(prompts, population=BOTH):
    study = draft_study(prompts=prompts, target_n=12)
    add_ranking(study, m=2)
    study.contrasts.update(population=population)
    return study


def warned(study, words="too_few_prompts_for_claim") -> list[str]:
    return [key for key in warnings_of(study) if key.startswith(words)]


def test_too_few_prompts_for_a_claim_about_prompts_are_a_warning():
    assert warned(ranking_of(4)) == [
        "too_few_prompts_for_claim:beta > alpha:1",
        "too_few_prompts_for_claim:gamma > beta:1",
    ]
    assert not warned(ranking_of(5))
    assert not warned(ranking_of(4, population=PEOPLE)) and not warned(ranking_of(4, population=""))


def test_prompts_that_no_batch_shows_do_not_count():
    study = ranking_of(12)
    study.target_n = 2
    study.annotators_per_batch = 2
    study.save()
    assert len(warned(study)) == 2, "one batch of two prompts"


def test_stated_chances_need_sets_of_prompts():
    study = spa_draft(prompts=4, with_rating=False)
    study.contrasts.update(population=BOTH)
    assert len(warned(study)) == 2, "four prompts are one set, whatever batch they are in"
    study = spa_draft(prompts=24, with_rating=False)
    study.contrasts.update(population=BOTH)
    assert not warned(study)


def test_a_rule_that_counts_people_warns_about_a_claim_about_prompts():
    def found(population, stopping):
        study = draft_study(systems=("alpha", "beta"))
        add_choice(study, margin=0.1, stopping=stopping, strategy="any")
        study.contrasts.update(population=population)
        return warned(study, "stops_for_these_prompts")

    assert found(BOTH, "anytime") == ["stops_for_these_prompts:beta > alpha:1"]
    assert not found(PEOPLE, "anytime") and not found("", "anytime") and not found(BOTH, "none")
