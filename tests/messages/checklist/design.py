"""The lines of what is missing or unwise in a study, its arms, stimuli and comparisons."""

from studies.models import Contrast, Output
from tests import builders
from tests.attention import add_attention
from tests.messages.bundle import with_change
from tests.messages.checklist.drafts import (
    about_a_survey,
    all_arms,
    arm,
    choice,
    first_question,
    frozen,
    full_spa,
    no_outputs_but,
    on,
    only,
    rankings_apart,
    rating,
    ready_made,
    reversed_sections,
    ruled,
    section_with,
    spa,
    study_with,
    without_contrasts,
)

D = "studies/design"


def paying_link(**rules):
    """A link whose panel pays 1.00 to people who are screened out; with the rules of early ends, if any are given."""

    def change(study):
        link = builders.recruitment(study, "prolific", settings={"screen_out_pay": 1.0})
        if rules:
            builders.promised(link, **rules)

    return change


def _rating_about_prompts(study):
    """A rating of all prompts, and a comparison that is to hold for prompts like these."""
    builders.add_rating(study, position=1, m=2)
    alpha, beta = study.systems.order_by("name")[:2]
    study.contrasts.create(x=beta, y=alpha, expected=">", population="people_and_prompts")


def contrast_in_bundle(**columns):
    """A scenario: a bundle whose first comparison has these values. The database lets no draft have them."""
    return with_change(lambda value: value["contrasts"][0].update(columns))


def section_with_stopping(rule):
    def change(study):
        section = study.sections.get()
        section.settings |= {"stopping": rule}
        section.save()

    return change


def claims(**columns):
    """A change: the comparisons claim that x is not worse."""
    return lambda study: study.contrasts.update(**{"hypothesis": "noninferiority", "margin": 0.1} | columns)


def _claim_about_sources(study):
    builders.add_humanlike(study, position=1)
    alpha, beta = study.systems.order_by("name")[:2]
    study.contrasts.create(x=beta, y=alpha, estimand="accuracy", hypothesis="noninferiority", margin=0.1)


LINES = {
    "annotators/pay:find_pay_problems": [
        ("No pay is set for these early ends", "Set it in the link's form", on(spa, paying_link())),
        ("The panel pays 1.0 to screened-out people", "Use the same amount", on(spa, paying_link(screened_out="2.00"))),
        (
            "People who fail attention checks have worked until then",
            "Promise them at least that amount",
            on(spa, lambda study: add_attention(study, position=9), paying_link(screened_out="1.00")),
        ),
    ],
    f"{D}:exclusion_rule_problems": [
        ("The exclusion rule “gone” is not installed", "Delete it", on(ruled("gone"))),
        (
            "no answer with the key “maybe”",
            "Correct the rule's settings",
            on(ruled("answered", question="fluent", options=["maybe"])),
        ),
        ("no section has test questions", "Make some on a section's page", on(ruled("failed_tests"))),
        ("no section has attention checks", "Add one with the purpose", on(ruled("failed_attention_checks"))),
    ],
    f"{D}:barring_problems": [
        (
            "No rule says which annotators get no further batch",
            "Declare a rule",
            on(spa, study_with(bars_flagged_annotators=True)),
        ),
        (
            "no consent text says so",
            "Enter a consent text",
            on(spa, study_with(bars_flagged_annotators=True, consent="")),
        ),
        (
            "every annotator gets only one",
            "#id_bars_flagged_annotators",
            on(spa, study_with(bars_flagged_annotators=True)),
        ),
    ],
    f"{D}:trial_batch_problems": [
        ("its live sections compare nothing", "Name another section", on(full_spa, about_a_survey)),
        ("no batch shows beta with alpha", "give one arm both systems", on(rankings_apart)),
    ],
    f"{D}:_problems_before_drawing": [
        ("Add a title", "#id_public_title", on(spa, study_with(public_title=" "))),
        ("There is no consent text", "#id_consent", on(spa, study_with(consent=""))),
        ("no contact for annotators", "#id_contact", on(spa, study_with(contact=""))),
        ("There is no target", "Enter how many annotators", on(spa, study_with(target_n=None))),
        ("There is no reward", "#id_reward", on(spa, study_with(reward=None))),
        ("The duration is missing", "#id_minutes", on(spa, study_with(minutes=None))),
        ("The study has no arm", "#arms-group", on(spa, lambda s: s.arms.all().delete())),
        ("The study has no live section", "#sections-group", on(spa, section_with(purpose="screening"))),
        (
            "Annotators may take several batches",
            "#id_batches_per_annotator",
            on(spa, study_with(batches_per_annotator=2)),
        ),
    ],
    f"{D}:arm_problems": [
        ("The arms have 9 places in total, but the target is 6", "#arms-group", on(spa, all_arms(wanted=9))),
        ("An arm takes 40 minutes, but the study declares 12", "#id_minutes", on(spa, all_arms(minutes=40))),
    ],
    f"{D}:find_analysis_blockers": [
        ("The study has no arm", "#arms-group", frozen(spa, lambda s: s.arms.all().delete())),
        ("The study has no live section", "#sections-group", frozen(spa, section_with(purpose="screening"))),
    ],
    f"{D}:section_problems": [
        ("Section 2 must come after the section that it reuses", "/change/", on(full_spa, reversed_sections)),
    ],
    f"{D}:section_config_problems": [
        ("Section 1: the protocol gone is not installed", "/change/", on(spa, section_with(protocol="gone"))),
        (
            "Section 1 has no question",
            "Add one",
            on(spa, lambda s: first_question(s).section.questions.all().delete()),
        ),
    ],
    f"{D}:stimuli_problems": [
        (
            "The study has only 1 system, so nothing can be compared",
            "#systems-group",
            on(rating, lambda s: only(s, "alpha")),
        ),
        ("1 prompts occur twice in a ready-made batch", "/", on(spa, ready_made(2, 3, twice=True))),
        ("1 outputs are empty", "/", on(spa, lambda s: _empty(s))),
        (
            "3 prompts share their source with another one",
            "Import the file again",
            on(spa, lambda s: s.prompts.filter(key__lt="p003").update(source="One report.")),
        ),
    ],
    f"{D}:_coverage_problems": [
        (
            "1 of 12 prompts lack the output of a system and are not shown: p011",
            "/",
            on(spa, lambda s: _missing(s, "p011")),
        ),
        (
            "A batch needs 4 prompts with an output of every system; there are 2",
            "Import more prompts",
            on(spa, no_outputs_but("beta", "p000", "p001")),
        ),
    ],
    f"{D}:too_wide_margin_problem": [
        (
            "The margin must be below 0.5, half of the scale in section",
            "Enter a smaller margin",
            on(spa, lambda s: s.contrasts.update(margin=0.6)),
        ),
    ],
    f"{D}:hypothesis_problem": [
        (
            "contrasts[0].margin: This hypothesis needs a margin",
            "Enter one",
            contrast_in_bundle(hypothesis="noninferiority", margin=None),
        ),
        (
            "contrasts[0].hypothesis: This hypothesis is about two systems",
            "Choose x and y",
            contrast_in_bundle(hypothesis="noninferiority", margin=0.1, x=None, y=None),
        ),
        (
            "contrasts[0].expected: This hypothesis cannot show that x and y are equivalent",
            "Choose another expected result",
            contrast_in_bundle(hypothesis="superiority_by_margin", margin=0.1, expected="~"),
        ),
        (
            "In section 1 this expected result means that x is worse",
            "Exchange x and y",
            on(spa, claims(expected="<")),
        ),
        (
            "Section 1 does not say in which direction x is better",
            "Choose another section",
            on(builders.draft_study, _claim_about_sources),
        ),
        (
            "The stopping rule of section 1 tests another hypothesis",
            "Remove the stopping rule",
            on(choice, section_with_stopping("anytime"), claims()),
        ),
    ],
    f"{D}:contrast_problems": [
        ("No comparison is planned", "#contrasts-group", on(spa, without_contrasts)),
        (
            "No planned comparison is primary",
            "#contrasts-group",
            on(spa, lambda s: s.contrasts.update(role="secondary")),
        ),
        (
            "No section estimates 'utility'",
            "#contrasts-group",
            on(spa, lambda s: s.contrasts.update(estimand="utility")),
        ),
        (
            "is expected to be equivalent but has no margin",
            "#contrasts-group",
            on(spa, lambda s: s.contrasts.update(expected="~")),
        ),
        ("No question asks about alpha and gamma", "#contrasts-group", on(spa, lambda s: _third_contrast(s))),
    ],
    f"{D}:population_problems": [
        (
            "beta > alpha, section 1: with 4 prompts the result is about exactly these",
            "Add prompts to reach five",
            on(lambda: builders.draft_study(prompts=4), _rating_about_prompts),
        ),
        (
            "beta > alpha, section 1: batches have 1 set that shares no prompt",
            "Add prompts",
            on(lambda: spa(prompts=4), lambda s: s.contrasts.update(population="people_and_prompts")),
        ),
    ],
    f"{D}:unanswered_prompt_problems": [
        (
            "Section 1: a target of 1 leaves 2 of 6 prompts without answers",
            "Raise the target to 2, or use fewer prompts",
            on(lambda: spa(prompts=6), study_with(target_n=1)),
        )
    ],
    f"{D}:ready_made_batch_problems": [
        (
            "A target of 1 leaves 1 of 2 ready-made batches without answers",
            "Raise the target to 2, or import fewer batches",
            on(spa, ready_made(2, batches=2), study_with(target_n=1)),
        )
    ],
    f"{D}:build_arm_block": [
        ("Some arms have a number of places", "Give each arm a number", on(spa, all_arms(wanted=3), arm())),
        (
            "The places of the arms (131, 130)",
            "Give the arms rounder numbers",
            on(spa, all_arms(wanted=131), arm(wanted=130)),
        ),
    ],
    f"{D}:_explain_shortage": [
        ("Batch 1 cannot be filled: for section 1", "Import more prompts", on(lambda: _shared_prompts())),
    ],
    f"{D}:require_prompts": [
        ("1 more prompt is needed and 0 are left", "Import more prompts", on(lambda: _shared_prompts())),
        (
            "1 more prompt is needed and 0 are left",
            "lower the number of items",
            on(lambda: _shared_prompts(), study_with(coverage="independent")),
        ),
        ("3 more prompts are needed and 2 are left", "Import more prompts", on(lambda: _after_humanlike())),
    ],
}


def _empty(study):
    output = Output.objects.filter(system__study=study).first()
    Output.objects.filter(pk=output.pk).update(text="", is_empty=True)


def _missing(study, key):
    Output.objects.filter(system__study=study, system__name="alpha", prompt__key=key).delete()


def _third_contrast(study):
    x, y = study.systems.get(name="alpha"), study.systems.get(name="gamma")
    Contrast.objects.create(study=study, x=x, y=y)


def _shared_prompts():
    """Human and machine wrote on the same three prompts: each has enough of them, and a batch of four texts has not."""
    study = builders.draft_study(systems=("human", "gpt"), prompts=3, target_n=4)
    builders.add_humanlike(study, m=4)
    return study


def _after_humanlike():
    """A section of three prompts, drawn in independent coverage after one that has taken four of the six."""
    study = builders.draft_study(systems=("human", "gpt"), prompts=6, target_n=4, coverage="independent")
    builders.add_humanlike(study, position=1, m=4)
    builders.add_rating(study, position=2, m=3)
    return study
