"""A planned comparison declares what its result is about, as a part of the design; designs from before it keep their hash."""

import json

import pytest

from analysis.stats.planning.inputs import Variation
from studies.design import checklist_sizes
from studies.design.checklist import check_design
from studies.design.checklist_sizes import SectionPrompts
from studies.design.draw import draw_batches, store_drawn_batches
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.imports.study_templates import STUDY_TEMPLATES, create_draft_from_template
from studies.models import Contrast, Design
from studies.models.guards import StudyFrozen
from studies.services import questions
from studies.services.copying import clone_study
from tests.admin_pages import study_url
from tests.builders import add_choice, add_ranking, add_rating, draft_study, launched, spa_draft, user, warnings_of
from tests.size_plans import choose, planned_size

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
        # A board and a check of a judge compare no two systems that the template knows.
        declared = set() if template.board or template.slug == "judge_check" else {wanted}
        assert {line.get("population") for line in lines(draft)} == declared, template.slug


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


# What nobody answers about


def unanswered(study) -> list[str]:
    return [problem.text for problem in check_design(study).problems if "without answers" in problem.text]


def test_a_target_that_leaves_prompts_or_pairs_without_answers_is_a_warning():
    study = ranking_of(12)
    assert unanswered(study) == []
    study.target_n = 3
    study.save()
    assert unanswered(study) == [
        "Section 1 (Ranking of a prompt's outputs, ties allowed): a target of 3 leaves 6 of 12 pairs of beta and alpha without answers. Raise the target to 6, or use fewer prompts."
    ]
    study.target_n = 6
    study.save()
    assert unanswered(study) == [], "the target that the warning names is enough"


def test_batches_that_were_not_read_can_show_only_so_many_prompts(monkeypatch):
    monkeypatch.setattr(checklist_sizes, "MIN_TRIAL_BATCHES", 2)
    study = ranking_of(30)
    study.target_n = 10
    study.save()
    assert "leaves 10 of 30 pairs" in unanswered(study)[0]


def test_an_independent_sample_leaves_prompts_out_on_purpose():
    study = ranking_of(12)
    study.target_n, study.coverage = 3, "independent"
    study.save()
    assert unanswered(study) == []


def test_ready_made_batches_that_no_place_opens_are_a_warning():
    study = ranking_of(12)
    store_drawn_batches(study, draw_batches(study, 0, 4), places_per_batch=1, origin="imported")
    study.target_n = 3
    study.save()
    assert unanswered(study) == [
        "A target of 3 leaves 1 of 4 ready-made batches without answers. Raise the target to 4, or import fewer batches."
    ]
    study.target_n = 4
    study.save()
    assert unanswered(study) == []


# What the comparisons can be about


def populations(study) -> list[str]:
    return check_design(study).populations


def test_the_checklist_says_what_each_comparison_can_be_about_and_what_more_prompts_bring():
    assert populations(ranking_of(12)) == [
        "Section 1 (Ranking of a prompt's outputs, ties allowed), beta > alpha; gamma > beta: 12 prompts and 12 people. The result can be about people and prompts like these. "
        "With 24 prompts and as many answers, its interval would be about 10\u00a0% narrower; with 24 people who each answer as much, about 25\u00a0% narrower."
    ]
    assert populations(ranking_of(4)) == [
        "Section 1 (Ranking of a prompt's outputs, ties allowed), beta > alpha; gamma > beta: 4 prompts and 12 people. The result is about exactly these prompts. Five prompts "
        "or more would let it be about prompts like these; the more, the narrower its interval."
    ]
    (declared,) = populations(ranking_of(12, population=PEOPLE))
    assert "exactly these prompts, as declared" in declared and "about 20\u00a0% wider" in declared


def test_the_chosen_plan_says_how_much_people_and_prompts_vary():
    study = ranking_of(12)
    choose(study, planned_size(study, variation=Variation(sd_people=0.1, sd_prompts=2.0)))
    assert (
        "With 24 prompts and as many answers, its interval would be about 20\u00a0% narrower" in populations(study)[0]
    )


def test_what_people_alone_are_counted_for_is_about_exactly_these_prompts():
    study = draft_study(systems=("alpha", "beta"), prompts=12, target_n=20)
    add_choice(study, margin=0.1, stopping="anytime", strategy="any")
    assert "The stopping rule counts people, so the result is about exactly these prompts." in populations(study)[0]


def test_stated_chances_count_sets_of_prompts():
    few, many = spa_draft(prompts=4, with_rating=False), spa_draft(prompts=24, with_rating=False)
    assert "all batches share prompts, so the result is about exactly these prompts" in populations(few)[0]
    assert "sets that share no prompt, so the result can be about people and prompts like these" in populations(many)[0]


def test_comparisons_of_many_systems_are_counted_and_not_all_named():
    study = draft_study(systems=tuple(f"s{n}" for n in range(8)), prompts=12, target_n=12)
    add_ranking(study, m=2)
    assert "; and 2 more: 12 prompts and 12 people" in populations(study)[0]


def test_a_design_that_cannot_be_drawn_says_nothing_about_its_comparisons():
    study = ranking_of(12)
    study.contact = ""
    study.save()
    assert populations(study) == []


def test_batches_that_were_not_read_count_in_proportion(monkeypatch):
    monkeypatch.setattr(checklist_sizes, "MIN_TRIAL_BATCHES", 6)
    assert "at least 12 prompts and 12 people" in populations(ranking_of(24))[0]


def test_two_items_of_one_system_each_count_as_one_difference():
    shown = SectionPrompts()
    shown.add_batch([(1, frozenset({1})), (1, frozenset({2})), (2, frozenset({1, 2})), (3, frozenset({3}))])
    assert shown.count_differences(Contrast(x_id=1, y_id=2)) == 2
    assert shown.count_differences(Contrast(x_id=1, y_id=3)) == 4 / 3
    assert shown.count_differences(Contrast()) == 4


def test_the_pages_of_a_draft_show_it_with_a_link_to_the_explanation(client):
    owner = user("owner", is_superuser=True)
    client.force_login(owner)
    study = ranking_of(12)
    for page in (study_url(study), f"{study_url(study).removesuffix('change/')}launch/"):
        html = client.get(page).content.decode()
        assert "12 prompts and 12 people. The result can be about people and prompts like these" in html, page
        assert "/docs/how-to/compare-two-systems/#what-the-result-is-about" in html, page


def test_comparisons_by_two_criteria_are_told_apart():
    study = draft_study(systems=("alpha", "beta"), prompts=6)
    add_rating(study, position=1, m=6)
    section = study.sections.get()
    section.questions.update(criterion="fluency")
    x, y = study.systems.order_by("name")
    Contrast.objects.create(study=study, x=x, y=y, criterion="fluency", population=BOTH)
    (said,) = check_design(study).populations
    assert "alpha against beta (fluency): " in said
