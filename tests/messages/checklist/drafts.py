"""Drafts for the checklist, changes of them, and what is then said."""

from studies.admin import workflow
from studies.models import Arm, Batch, Contrast, Item, Output, Placement, Question, Section, SectionArm, Study, System
from studies.protocols.marks import ERRORS
from studies.services import lifecycle
from studies.services.known_answers import delete_practice_item_and_test_runs
from studies.services.lifecycle import ActionRefused
from tests import builders
from tests.messages.lines import Shown


def on(make, *changes):
    """A scenario: the checklist of a study that is made, then changed."""

    def scenario():
        study = make()
        for change in changes:
            change(study)
        study = Study.objects.get(pk=study.pk)
        return [Shown(problem.text, problem.url) for problem in workflow.check_linked_design(study)[0]]

    return scenario


def study_with(**columns):
    return lambda study: Study.objects.filter(pk=study.pk).update(**columns)


def section_with(**columns):
    return lambda study: study.sections.update(**columns)


def settings_with(**settings):
    def change(study):
        for section in study.sections.all():
            section.settings |= settings
            section.save()

    return change


def question_with(**columns):
    """Of the first question."""
    return lambda study: Question.objects.filter(pk=first_question(study).pk).update(**columns)


def first_question(study):
    return Question.objects.filter(section__study=study).order_by("section__position", "position").first()


def names_systems(study):
    x, y = study.systems.order_by("name")[:2]
    question_with(x=x, y=y)(study)


def arm(name="second", **columns):
    def change(study):
        made = Arm.objects.create(study=study, name=name, **{k: v for k, v in columns.items() if k != "systems"})
        made.systems.set(study.systems.filter(name__in=columns.get("systems", ())))

    return change


def all_arms(**columns):
    return lambda study: study.arms.update(**columns)


def contrast(**columns):
    def change(study):
        x, y = study.systems.order_by("name")[:2]
        Contrast.objects.create(study=study, x=x, y=y, **columns)

    return change


def without_contrasts(study):
    study.contrasts.all().delete()


def references(*pairs):
    def change(study):
        for name, reference in pairs:
            System.objects.filter(study=study, name=name).update(reference=reference)

    return change


def ready_made(*outputs_of_items, batches=1, twice=False):
    """Ready-made batches, each with items of the first prompt and so many outputs; ``twice``: a prompt in two items of one batch."""

    def change(study):
        section, made = study.sections.first(), []
        for number, n in enumerate(outputs_of_items, 1):
            prompt = study.prompts.order_by("key")[0 if twice else number - 1]
            item = Item.objects.create(study=study, section=section, number=number, prompt=prompt, content=str(number))
            for place, output in enumerate(Output.objects.filter(prompt=prompt).order_by("system__name")[:n]):
                item.exposures.create(output=output, number=place)
            made.append(item)
        for number in range(batches):
            batch = Batch.objects.create(
                study=study, arm=study.arms.first(), number=number, wanted=1, origin="imported", key=f"b{number}"
            )
            for place, item in enumerate(made):
                Placement.objects.create(batch=batch, item=item, number=place)

    return change


def spa(**columns):
    return builders.spa_draft(with_rating=False, with_surveys=False, **columns)


def full_spa():
    return builders.spa_draft()


def choice(systems=("alpha", "beta"), m=2, **settings):
    study = builders.draft_study(systems=systems)
    builders.add_choice(study, m=m, margin=settings.pop("margin", None), **settings)
    return study


def of(add, **options):
    """A study with one section of this protocol."""

    def make():
        study = builders.draft_study()
        add(study, position=1, **options)
        return study

    return make


rating, ranking, marks, relative = (
    of(add) for add in (builders.add_rating, builders.add_ranking, builders.add_marks, builders.add_relative)
)


def humanlike():
    return builders.humanlike_draft(domains=("news",))


def trained():
    return builders.humanlike_draft(domains=("news",), conditions=("examples",))


def humans_alone():
    study = builders.draft_study(systems=("human", "gpt"), prompts=8, target_n=4)
    builders.add_humanlike(study, m=4)
    return study


def survey():
    study = full_spa()
    return study


def of_survey(**columns):
    """Of the first question of the first survey."""

    def change(study):
        question = Question.objects.filter(section__study=study, section__protocol="survey").first()
        Question.objects.filter(pk=question.pk).update(**columns)

    return change


def scale(**stored):
    return question_with(scale=stored)


def of_errors(**columns):
    return lambda study: Question.objects.filter(section__study=study, key=ERRORS).update(**columns)


def no_outputs_but(system, *keys):
    return lambda study: (
        Output.objects.filter(system__study=study, system__name=system).exclude(prompt__key__in=keys).delete()
    )


def without_question(*keys):
    return lambda study: Question.objects.filter(section__study=study, key__in=keys).delete()


def without_practice(study):
    for item in study.items.filter(kind="practice"):
        delete_practice_item_and_test_runs(item, by=None)


def frozen(make, change):
    """A draft that is frozen for answers given elsewhere."""

    def scenario():
        study = make()
        change(study)
        try:
            lifecycle.freeze_and_close(study, by=None)
        except lifecycle.NotReady as refused:
            links = workflow.problems_with_correction_urls(study, refused.problems)
            return [Shown(problem.text, problem.url) for problem in links]
        return []

    return scenario


def previewed(make, change):
    """What the preview says where a draft cannot be shown."""

    def scenario():
        from django.urls import reverse

        from tests.admin_pages import logged_in

        owner = builders.user()
        study = make()
        Study.objects.filter(pk=study.pk).update(owner=owner)
        study.members.create(user=owner, role="owner")
        change(study)
        page = logged_in(owner).get(reverse("admin:annotators_preview_page", args=[study.pk, "s1"]), follow=True)
        return [Shown(str(message), page.request["PATH_INFO"]) for message in page.context["messages"]]

    return scenario


def practised(make, change, *outputs):
    """What is said where a practice item cannot be made of these systems' outputs of one prompt."""

    def scenario():
        from studies.services.known_answers import create_practice_item_and_delete_test_runs

        study = make()
        change(study)
        section = study.sections.filter(purpose="training").first()
        prompt = study.prompts.filter(outputs__system__name=outputs[0]).first()
        try:
            create_practice_item_and_delete_test_runs(
                section, list(prompt.outputs.filter(system__name__in=outputs).order_by("pk")), "", by=None
            )
        except ActionRefused as refused:
            return [Shown(str(refused))]
        return []

    return scenario


def linked_pay():
    study = spa()
    builders.recruitment(study)
    return study


def reused_by_relative():
    study = builders.draft_study()
    section = builders.add_rating(study, position=1, m=2)
    made = builders.add_relative(study, position=2)
    Section.objects.filter(pk=made.pk).update(reuses=section)
    return study


def shown_again():
    study = builders.draft_study(systems=("alpha", "beta", "gamma"))
    section = builders.add_spa(study, position=1, pairs=[("alpha", "beta")])
    builders.add_rating(study, position=2, reuses=section)
    references(("gamma", "maximal"))(study)
    return study


def reversed_sections(study):
    first, second = study.sections.filter(protocol__in=["spa", "rating"]).order_by("position")
    Section.objects.filter(pk=first.pk).update(reuses=second)
    Section.objects.filter(pk=second.pk).update(reuses=None)


def reused_by_other_arms(study):
    first, second = study.sections.filter(protocol__in=["spa", "rating"]).order_by("position")
    for section, name in ((first, "all"), (second, "second")):
        SectionArm.objects.create(section=section, arm=study.arms.get(name=name))


def stopping(**columns):
    settings = {"stopping": "anytime", "strategy": "any"} | columns
    return lambda: choice(**settings)


def humanlike_positions(study):
    """The live section comes first."""
    live = study.sections.get(purpose="live")
    training = study.sections.get(purpose="training")
    Section.objects.filter(pk=live.pk).update(position=20)
    Section.objects.filter(pk=training.pk).update(position=21)


LABELS = ["{first} much", "{first}", "the same", "{second}", "{second} much"]


def choice_shown_again():
    study = builders.draft_study()
    section = builders.add_rating(study, position=1, m=2)
    made = builders.add_choice(study, position=2, m=2)
    Section.objects.filter(pk=made.pk).update(reuses=section)
    return study


def rankings_apart():
    """Two pairs of systems, each with an arm of its own, and a comparison across them."""
    study = builders.draft_study(systems=("alpha", "beta", "gamma", "delta"))
    builders.add_ranking(study, position=1)
    study.arms.first().systems.set(study.systems.filter(name__in=["alpha", "gamma"]))
    arm(systems=["beta", "delta"])(study)
    return study


def about_a_survey(study):
    """The comparison is about a section that asks about no system."""
    study.contrasts.update(section=study.sections.filter(protocol="survey", purpose="live").first())


def ruled(rule, **settings):
    return lambda: builders.spa_draft(with_rating=False, rules=[(rule, settings)])


def only(study, name):
    study.contrasts.all().delete()
    Output.objects.filter(system__study=study).exclude(system__name=name).delete()
    study.systems.exclude(name=name).delete()
