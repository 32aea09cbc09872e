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
    reused_by_other_arms,
    reversed_sections,
    ruled,
    section_with,
    spa,
    study_with,
    without_contrasts,
)
from tests.messages.lines import At


def paying_link(**rules):
    """A link whose panel pays 1.00 to people who are screened out; with the rules of early ends, if any are given."""

    def change(study):
        link = builders.recruitment(study, "prolific", promises="", settings={"screen_out_pay": 1.0})
        if rules:
            builders.promised(link, **rules)

    return change


def _rating_about_prompts(study):
    """A rating of all prompts, and a comparison that is to hold for prompts like these."""
    builders.add_rating(study, position=1, m=2)
    alpha, beta = study.systems.order_by("name")[:2]
    study.contrasts.create(x=beta, y=alpha, expected=">", population="people_and_prompts")


def _in_the_section_too(study):
    planned = study.contrasts.first()
    study.contrasts.create(x=planned.x, y=planned.y, section=study.sections.first())


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


CHECKLIST = {
    "The link is closed to visitors": on(spa, paying_link()),
    "still has … place": At("#id_consent", on(spa, study_with(consent="[… the institution] asks you"))),
    "The panel pays": on(spa, paying_link(screened_out="2.00")),
    "People who fail": on(spa, lambda study: add_attention(study, position=9), paying_link(screened_out="1.00")),
    "The exclusion rule": on(ruled("gone")),
    "Exclusion rule “…”: … Correct": (
        on(ruled("answered", question="fluent", options=["maybe"])),
        on(ruled("failed_tests")),
        on(ruled("failed_attention_checks")),
    ),
    "No rule says": on(spa, study_with(bars_flagged_annotators=True)),
    "Flagged annotators get no further batch, but no consent": on(
        spa, study_with(bars_flagged_annotators=True, consent="")
    ),
    "Annotators are asked whether": on(spa, study_with(asks_to_share_preferences=True, consent="")),
    "A person's answers in several": on(spa, study_with(joins_rounds=True, consent="")),
    "Flagged annotators get no further batch, but every": At(
        "#id_bars_flagged_annotators", on(spa, study_with(bars_flagged_annotators=True))
    ),
    "The planned comparison … cannot be answered: its live": on(full_spa, about_a_survey),
    "The planned comparison … cannot be answered: ….": on(rankings_apart),
    "Add a title": At("#id_public_title", on(spa, study_with(public_title=" "))),
    "There is no consent": At("#id_consent", on(spa, study_with(consent=""))),
    "There is no contact": At("#id_contact", on(spa, study_with(contact=""))),
    "There is no target": on(spa, study_with(target_n=None)),
    "There is no reward": At("#id_reward", on(spa, study_with(reward=None))),
    "The duration is missing": At("#id_minutes", on(spa, study_with(minutes=None))),
    "_problems_before_drawing: The study has no arm": At("#arms-group", on(spa, lambda s: s.arms.all().delete())),
    "_problems_before_drawing: The study has no live": At(
        "#sections-group", on(spa, section_with(purpose="screening"))
    ),
    "Annotators may take several batches. They": At(
        "#id_batches_per_annotator", on(spa, study_with(batches_per_annotator=2))
    ),
    "The arms have … places": At("#arms-group", on(spa, all_arms(wanted=9))),
    "An arm takes": At("#id_minutes", on(spa, all_arms(minutes=40))),
    "find_analysis_blockers: The study has no arm": At("#arms-group", frozen(spa, lambda s: s.arms.all().delete())),
    "find_analysis_blockers: The study has no live": At(
        "#sections-group", frozen(spa, section_with(purpose="screening"))
    ),
    "must come after": At("/change/", on(full_spa, reversed_sections)),
    "asks about the items of a section that": At("/change/", on(full_spa, arm(), reused_by_other_arms)),
    "the protocol … is not installed": At("/change/", on(spa, section_with(protocol="gone"))),
    "has no question": on(spa, lambda s: first_question(s).section.questions.all().delete()),
    "The study has …, so nothing": At("#systems-group", on(rating, lambda s: only(s, "alpha"))),
    "prompts occur twice": At("/", on(spa, ready_made(2, 3, twice=True))),
    "outputs are empty": At("/", on(spa, lambda s: _empty(s))),
    "prompts share their source": on(spa, lambda s: s.prompts.filter(key__lt="p003").update(source="One report.")),
    "of … prompts": At("/", on(spa, lambda s: _missing(s, "p011"))),
    "A batch… needs": on(spa, no_outputs_but("beta", "p000", "p001")),
    "The margin must be below": on(spa, lambda s: s.contrasts.update(margin=0.6)),
    "This hypothesis needs": At("contrasts[0].margin", contrast_in_bundle(hypothesis="noninferiority", margin=None)),
    "This hypothesis is about": At(
        "contrasts[0].hypothesis", contrast_in_bundle(hypothesis="noninferiority", margin=0.1, x=None, y=None)
    ),
    "This hypothesis cannot show": At(
        "contrasts[0].expected", contrast_in_bundle(hypothesis="superiority_by_margin", margin=0.1, expected="~")
    ),
    "In section … this expected": on(spa, claims(expected="<")),
    "Section … does not say": on(builders.draft_study, _claim_about_sources),
    "The stopping rule of section": on(choice, section_with_stopping("anytime"), claims()),
    "No comparison is planned": At("#contrasts-group", on(spa, without_contrasts)),
    "No planned comparison": At("#contrasts-group", on(spa, lambda s: s.contrasts.update(role="secondary"))),
    "No section estimates": At("#contrasts-group", on(spa, lambda s: s.contrasts.update(estimand="utility"))),
    "People will judge": At("/new/file/", on(spa, lambda s: s.contrasts.exclude(pk=s.contrasts.first().pk).delete())),
    "is expected to be equivalent": At("#contrasts-group", on(spa, lambda s: s.contrasts.update(expected="~"))),
    "are in one family and about": At("#contrasts-group", on(spa, lambda s: _in_the_section_too(s))),
    "No question asks": At("#contrasts-group", on(spa, lambda s: _third_contrast(s))),
    "with … the result": on(lambda: builders.draft_study(prompts=4), _rating_about_prompts),
    "batches have … set": on(lambda: spa(prompts=4), lambda s: s.contrasts.update(population="people_and_prompts")),
    "Section …: a target": on(lambda: spa(prompts=6), study_with(target_n=1)),
    "A target of … leaves": on(spa, ready_made(2, batches=2), study_with(target_n=1)),
    "Some arms have a number": on(spa, all_arms(wanted=3), arm()),
    "The places of the arms": on(spa, all_arms(wanted=131), arm(wanted=130)),
    "Batch …… cannot be filled": on(lambda: _shared_prompts()),
    "more prompt… … needed": (
        on(lambda: _shared_prompts()),
        on(lambda: _shared_prompts(), study_with(coverage="independent")),
        on(lambda: _after_humanlike()),
    ),
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
