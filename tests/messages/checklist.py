"""The lines of the checklist: what is missing or unwise in a draft. Each problem is linked to where it is changed."""

from studies.admin import life
from studies.models import Arm, Batch, Contrast, Item, Output, Placement, Question, Section, Study, System
from studies.protocols.marks import ERRORS
from studies.protocols.marks.codebook import read_categories
from studies.services import lifecycle
from studies.services.lifecycle import NotNow
from studies.services.practice import delete_practice
from tests import builders

from .lines import Shown

D, P = "studies/design/definition", "studies/protocols"


def on(make, *changes):
    """A scenario: the checklist of a study that is made, then changed."""

    def scenario():
        study = make()
        for change in changes:
            change(study)
        study = Study.objects.get(pk=study.pk)
        return [Shown(problem.text, problem.url) for problem in life.checklist(study)]

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
    return lambda study: Question.objects.filter(pk=_question(study).pk).update(**columns)


def _question(study):
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
        delete_practice(item, by=None)


def frozen(make, change):
    """A draft that is frozen for answers given elsewhere."""

    def scenario():
        study = make()
        change(study)
        try:
            lifecycle.freeze(study, by=None)
        except lifecycle.NotReady as refused:
            links = life.problem_links(study, refused.problems)
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
        from studies.services.practice import make_practice

        study = make()
        change(study)
        section = study.sections.filter(purpose="training").first()
        prompt = study.prompts.filter(outputs__system__name=outputs[0]).first()
        try:
            make_practice(section, list(prompt.outputs.filter(system__name__in=outputs).order_by("pk")), "", by=None)
        except NotNow as refused:
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
CATEGORIES = "style | Style"


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


LINES = {
    f"{D}:_rule_problems": [
        ("The exclusion rule “gone” is not installed", "Delete it", on(ruled("gone"))),
        ("no answer with the key “maybe”", "Correct the rule's settings", on(ruled("answered", question="fluent", options=["maybe"]))),
    ],
    f"{D}:_batch_problems": [
        ("no live section that it is about compares anything", "Name another section", on(full_spa, about_a_survey)),
        ("no batch shows beta with alpha", "give one arm both systems", on(rankings_apart)),
    ],
    f"{D}:_stated_problems": [
        ("Annotators need a title", "#id_public_title", on(spa, study_with(public_title=" "))),
        ("There is no consent text", "#id_consent", on(spa, study_with(consent=""))),
        ("nobody to write to", "#id_contact", on(spa, study_with(contact=""))),
        ("There is no target", "say how many annotators", on(spa, study_with(target_n=None))),
        ("No reward is stated", "#id_reward", on(spa, study_with(reward=None))),
        ("No duration is declared", "#id_minutes", on(spa, study_with(minutes=None))),
        ("There is no arm", "#arms-group", on(spa, lambda s: s.arms.all().delete())),
        ("There is no live section", "#sections-group", on(spa, section_with(purpose="screening"))),
        ("Annotators may take several batches", "#id_batches_per_annotator", on(spa, study_with(batches_per_annotator=2))),
    ],
    f"{D}:_arm_problems": [
        ("The arms have 9 places in all, the target is 6", "#arms-group", on(spa, all_arms(wanted=9))),
        ("An arm takes 40 minutes, the study declares 12", "#id_minutes", on(spa, all_arms(minutes=40))),
    ],
    f"{D}:unreadable": [
        ("There is no arm", "#arms-group", frozen(spa, lambda s: s.arms.all().delete())),
        ("There is no live section", "#sections-group", frozen(spa, section_with(purpose="screening"))),
    ],
    f"{D}:_section_problems": [
        ("Section 2 must come after the section that it reuses", "/change/", on(full_spa, reversed_sections)),
    ],
    f"{D}:_form_problems": [
        ("Section 1: the protocol gone is not installed", "/change/", on(spa, section_with(protocol="gone"))),
        ("Section 1 asks nothing", "add a question", on(spa, lambda s: _question(s).section.questions.all().delete())),
    ],
    f"{D}:_stimuli_problems": [
        ("There is 1 system: nothing can be compared", "#systems-group", on(rating, lambda s: _only(s, "alpha"))),
        ("In 1 of the ready-made batches a prompt stands twice", "/", on(spa, ready_made(2, 3, twice=True))),
        ("1 outputs are empty", "/", on(spa, lambda s: _empty(s))),
    ],
    f"{D}:_coverage_problems": [
        ("1 of 12 prompts have no output of some system and are not shown: p011", "/", on(spa, lambda s: _missing(s, "p011"))),
        ("A batch needs 4 prompts with an output of every system; there are 2", "Import more prompts", on(spa, no_outputs_but("beta", "p000", "p001"))),
    ],
    f"{D}:_contrast_problems": [
        ("No comparison is planned", "#contrasts-group", on(spa, without_contrasts)),
        ("No comparison is primary", "#contrasts-group", on(spa, lambda s: s.contrasts.update(role="secondary"))),
        ("No section estimates 'utility'", "#contrasts-group", on(spa, lambda s: s.contrasts.update(estimand="utility"))),
        ("is expected to be equivalent, but no margin says", "#contrasts-group", on(spa, lambda s: s.contrasts.update(expected="~"))),
        ("No question asks about alpha and gamma", "#contrasts-group", on(spa, lambda s: _third_contrast(s))),
    ],
    "studies/design/draw:block_of": [
        ("Some arms have a number of places", "give each arm a number", on(spa, all_arms(wanted=3), arm())),
        ("The places of the arms (131, 130)", "Give the arms rounder numbers", on(spa, all_arms(wanted=131), arm(wanted=130))),
    ],
    "studies/design/draw:_explained": [
        ("Batch 1 cannot be filled: for section 1", "Import more prompts", on(lambda: _shared_prompts())),
    ],
    "studies/design/draw:take": [("1 more prompt is needed and 0 are left", "Import more prompts", on(lambda: _shared_prompts()))],
    "studies/design/draw:_from_sources": [
        ("1 more prompt is needed and 0 are left", "lower the number of items", on(lambda: _shared_prompts(), study_with(coverage="independent"))),
    ],
    "studies/design/draw:_items_of": [
        ("3 more prompts are needed and 2 are left", "Import more prompts", on(lambda: _after_humanlike())),
    ],
    "studies/protocols/base/pairs:drawn_pairs": [
        ("two systems are needed to make a pair and there is 1", "Add another system", on(choice, arm(systems=["alpha"]))),
        ("none of the pairs that the section shows is made of these systems", "Plan a comparison of two", on(
            lambda: choice(("alpha", "beta", "gamma"), pairs="chosen"), arm(systems=["alpha", "gamma"]))),
        ("each pair of each prompt has been drawn once", "Lower the target", lambda: _all_drawn()),
    ],
    "studies/protocols/base/pairs:pair_problems": [
        ("Annotators must see at least one pair", "#id_m", on(choice, section_with(m=0))),
        ("Two systems are needed to be shown side by side, and the study has 1", "Add a system", on(lambda: choice(("alpha",)))),
        ("No pair is chosen", "plan a comparison of two systems", on(lambda: choice(pairs="chosen"), without_contrasts)),
        ("No system is marked as the reference", "mark one under Systems", on(lambda: choice(pairs="reference"))),
        ("No two systems are shown side by side", "add a system", on(choice, without_contrasts, references(("alpha", "maximal")))),
        ("names omega, which is none of the study's", "/change/", on(lambda: choice(order="omega"))),
        ("is planned, but its pair is not shown here", "#contrasts-group", on(
            lambda: choice(("alpha", "beta", "gamma"), pairs="chain", order="alpha\ngamma\nbeta"))),
        ("1 ready-made items do not hold two outputs", "/", on(choice, ready_made(1, 2))),
    ],
    f"{P}/humanlike:problems": [
        ("There must be a question with the key “source”", "#questions-group", on(humanlike, without_question("source"))),
        ("Question source must be asked on an even number of points", "#questions-group", on(
            humanlike, lambda s: Question.objects.filter(section__study=s, key="source").update(scale={"kind": "likert", "minimum": 1, "maximum": 5}))),
        ("A question about one text cannot name two systems", "#questions-group", on(humanlike, names_systems)),
        ("Annotators must see at least one text", "#id_m", on(humanlike, section_with(m=0))),
    ],
    f"{P}/humanlike:practice": [
        ("The section must first ask “source”", "must first ask", practised(trained, lambda s: (without_practice(s), without_question("source")(s)), "human")),
        ("A practice pair is a human text and a machine text", "a practice text stands alone", lambda: _two_humans()),
    ],
    f"{P}/humanlike:_training_problems": [
        ("A training section needs practice items", "make them on the section's own page", on(
            trained, without_practice)),
        ("Arm news gpt3 examples has 3 of 5 practice items of its domain", "/change/", on(trained, lambda s: s.sections.filter(purpose="training").update(m=5))),
        ("is trained here, but its condition is “none”", "#arms-group", on(trained, all_arms(condition="none"))),
        ("It comes after texts that count", "/change/", on(trained, humanlike_positions)),
    ],
    f"{P}/humanlike:_live_problems": [
        ("1 ready-made items hold several outputs", "Give each output an item of its own", on(humans_alone, ready_made(2))),
        ("No question “why” or “change” asks for reasons", "#questions-group", on(humanlike, without_question("why", "change"))),
        ("Fewer than 4 texts each", "#id_m", on(humanlike, section_with(m=2))),
    ],
    f"{P}/humanlike:_drawing_problems": [
        ("Arm all has no human system", "#systems-group", on(humans_alone, lambda s: s.systems.update(is_human=False))),
        ("Arm all has 1 human texts; a batch needs 2", "/", on(humans_alone, no_outputs_but("human", "p001"))),
        ("Two arms have the same domain, systems and condition", "#arms-group", on(humans_alone, arm())),
    ],
    f"{P}/marks/__init__:problems": [
        (f"There must be a question with the key “{ERRORS}”", "#questions-group", on(marks, without_question(ERRORS))),
        ("No question “score” judges the whole", "#questions-group", on(marks, without_question("score"))),
        ("Question score must be asked between two ends", "#questions-group", on(
            marks, lambda s: Question.objects.filter(section__study=s, key="score").update(scale={"kind": "text"}))),
        ("A question about one output cannot name two systems", "#questions-group", on(marks, names_systems)),
        ("Annotators must see at least one prompt", "#id_m", on(marks, section_with(m=0))),
        ("1 outputs are Markdown, dialogues or images", "/", on(marks, lambda s: _markdown(s))),
    ],
    f"{P}/marks/__init__:_errors_problems": [
        (f"Question {ERRORS} must be asked as a whole number from 0", "#questions-group", on(marks, of_errors(scale={"kind": "text"}))),
        (f"Question {ERRORS} must reach up to", "#questions-group", on(marks, of_errors(scale={"kind": "number", "minimum": 0, "maximum": 1}))),
        ("offers ways not to answer", "let it be left empty instead", on(marks, of_errors(skip_reasons=[{"key": "no", "label": "No"}]))),
    ],
    f"{P}/marks/codebook:read_categories": [
        ("Line 1: write “key | label | explanation”", "write “key", on(marks, settings_with(categories="a | b | c | d"))),
    ],
    f"{P}/marks/codebook:read_severities": [
        ("Line 1: write “key | label | weight | explanation”", "write “key", on(marks, settings_with(severities="a | b"))),
        ("Two grades have the same weight", "/change/", on(marks, settings_with(severities="a | A | 1\nb | B | 1"))),
    ],
    f"{P}/marks/codebook:_lines": [
        ("Line 1: a key of at most 50 characters and a label are needed", "are needed", on(marks, settings_with(categories=" | Style"))),
    ],
    f"{P}/marks/codebook:_weight": [
        ("Line 1: the weight must be a number above 0", "must be a number", on(marks, settings_with(severities="a | A | heavy"))),
    ],
    f"{P}/marks/codebook:_unlike": [
        ("At least one kind of error is needed", "is needed", lambda: _no_categories()),
        ("“style” stands twice", "/change/", on(marks, settings_with(categories="style | Style\nstyle | Other"))),
    ],
    f"{P}/ranking:problems": [
        ("Arm second shows the outputs of one system", "Give it another system", on(ranking, arm(systems=["alpha"]))),
        ("There is nothing to rank", "two systems at least", on(ranking, lambda s: _only(s, "alpha"))),
        ("9 outputs are ranked at once", "#systems-group", on(lambda: _many_ranked())),
        ("Question place must be asked as a whole number", "#questions-group", on(ranking, scale(kind="text"))),
        ("Question place must take numbers from 1 to 3", "#questions-group", on(ranking, scale(kind="number", minimum=1, maximum=2))),
        ("Question place ranks all outputs: it cannot name two systems", "#questions-group", on(ranking, names_systems)),
        ("Question place offers ways not to answer", "Let a whole prompt be left empty", on(
            ranking, question_with(skip_reasons=[{"key": "no", "label": "No"}]))),
        ("Annotators must see at least one prompt", "#id_m", on(ranking, section_with(m=0))),
        ("1 ready-made items hold one output", "/", on(ranking, ready_made(1, 2))),
    ],
    f"{P}/rating:problems": [
        ("Question overall must be asked on points", "#questions-group", on(rating, scale(kind="text"))),
        ("Question overall rates one output", "#questions-group", on(rating, names_systems)),
        ("Annotators must see at least one prompt", "#id_m", on(rating, section_with(m=0))),
    ],
    f"{P}/rating:_reference_problems": [
        ("There is a maximal reference and no minimal one", "#systems-group", on(rating, references(("alpha", "maximal")))),
        ("Utilities between references are asked for on points", "#questions-group", on(
            rating, references(("alpha", "maximal"), ("beta", "minimal")))),
        ("is about utilities, which need a maximal and a minimal reference", "#contrasts-group", on(rating, contrast(estimand="utility"))),
    ],
    f"{P}/relative:problems": [
        ("cannot name two systems: sides are drawn", "#questions-group", on(relative, names_systems)),
        ("must be asked on points", "#questions-group", on(relative, scale(kind="text"))),
        ("must have a point in the middle", "#questions-group", on(relative, scale(kind="likert", labels=LABELS[:4]))),
        ("must have words for each of its points", "#questions-group", on(relative, scale(kind="likert", minimum=1, maximum=5))),
        ("must name {second} at its first point", "#questions-group", on(relative, scale(kind="likert", labels=LABELS))),
        ("Section 1 does not show pairs: its items cannot be shown here again", "/change/", on(reused_by_relative)),
    ],
    f"{P}/spa:_unseen_problems": [
        ("Arm second does not show beta", "add the system to the arm", on(spa, arm(systems=["alpha"]))),
    ],
    f"{P}/spa:problems": [
        ("Maximal and minimal references are read here", "give that section items of its own", on(shown_again)),
        ("Fewer than 4 prompts", "#id_m", on(spa, section_with(m=2))),
        ("Annotators must see at least one prompt", "#id_m", on(spa, section_with(m=0))),
        ("names no two systems", "#questions-group", on(spa, question_with(x=None, y=None))),
        ("must contain {x} and {y}", "#questions-group", on(spa, question_with(text="Which?"))),
        ("must be asked as a chance from 0 to 100", "#questions-group", on(spa, scale(kind="text"))),
        ("Some pair is asked in one direction only", "#questions-group", on(lambda: spa(both=False))),
    ],
    f"{P}/survey:problems": [
        ("A survey shows no items", "set m to 0", on(full_spa, lambda s: s.sections.filter(protocol="survey").update(m=1))),
        ("asks for one of the outputs shown, and there is none", "#questions-group", on(full_spa, of_survey(scale={"kind": "output"}))),
    ],
    f"{P}/two_choice:clean_workers": [
        ("An even number has no majority", "choose an odd one", on(lambda: choice(workers=4))),
    ],
    f"{P}/two_choice:problems": [
        ("it shows those of another section again: nothing would be counted", "Give it items of its own", on(choice_shown_again)),
        ("Question better must be asked as one of the outputs shown", "#questions-group", on(choice, scale(kind="text"))),
        ("Question better cannot name two systems", "#questions-group", on(choice, names_systems)),
        ("Question better has no help", "#questions-group", on(choice, question_with(help=""))),
        ("Several criteria are asked about the same pair", "#questions-group", on(choice, lambda s: _second_criterion(s))),
    ],
    f"{P}/two_choice:_strategy_problems": [
        ("The strategy wants 2 annotators for each batch; the study gives 1", "#id_annotators_per_batch", on(lambda: choice(strategy="max_three"))),
        ("A labelling strategy counts labels", "needs balanced coverage", on(choice, study_with(coverage="independent"))),
        ("Several arms see this section", "#arms-group", on(choice, arm())),
        ("One annotator answers all 6 batches", "allow so many batches each", on(lambda: choice(strategy="fixed"))),
    ],
    f"{P}/two_choice:_ready_made_problems": [
        ("2 items lie in several ready-made batches", "/", on(choice, ready_made(2, 2, batches=2))),
        ("All ready-made batches must be open for third labels", "set the target to 8", on(
            lambda: choice(strategy="max_three"), study_with(annotators_per_batch=2), ready_made(2, 2, batches=4))),
    ],
    f"{P}/two_choice:_supply_problems": [
        ("12 items in batches of 2 are 6 places under this strategy; the target is 90", "#id_target_n", on(choice, study_with(target_n=90))),
    ],
    f"{P}/two_choice:_stopping_problems": [
        ("A stopping rule needs a budget", "#id_target_n", on(stopping(), study_with(target_n=None))),
        ("The stopping rule looks at primary comparisons, and there is none", "#contrasts-group", on(stopping(), without_contrasts)),
        ("with a fixed worker there is one", "Choose another rule", on(stopping(strategy="fixed"))),
        ("has no margin", "#contrasts-group", on(stopping())),
        ("Annotators may take several batches: the stopping rule counts the first", "#id_batches_per_annotator", on(stopping(), study_with(batches_per_annotator=2))),
        ("Hoeffding's bound holds for one look", "/change/", on(stopping(stopping="first"))),
    ],
    "studies/protocols/base/scales:_field": [
        ("A question about the outputs shown is asked under Two choices alone", "asked under Two choices", previewed(
            full_spa, of_survey(scale={"kind": "output"}))),
    ],
    "studies/protocols/base/scales:read_scale": [
        ("There is no scale 'stars'", "there are", on(spa, scale(kind="stars"))),
        ("A scale has no colour", "#questions-group", on(spa, scale(kind="percent", colour="red"))),
        ("A scale's lowest value must be below its highest", "must be below", on(spa, scale(kind="number", minimum=5, maximum=5))),
        ("A scale of points has at most 20 of them", "use a number between two ends", on(spa, scale(kind="likert", minimum=1, maximum=40))),
        ("The answers to choose from must be at least two", "at least two", on(full_spa, of_survey(scale={"kind": "choice", "options": []}))),
    ],
}  # fmt: skip


def _only(study, name):
    study.contrasts.all().delete()
    Output.objects.filter(system__study=study).exclude(system__name=name).delete()
    study.systems.exclude(name=name).delete()


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


def _all_drawn():
    """More places than the items of a strategy that draws each once."""
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, target_cap=40)
    builders.add_choice(study, m=2)
    study = builders.launched(study)
    try:
        lifecycle.draw_more(study, 10, by=None)
    except lifecycle.NotNow as refused:
        return [Shown(str(refused))]
    return []


def _two_humans():
    from studies.services.practice import make_practice

    study = trained()
    other = System.objects.create(study=study, name="another", is_human=True)
    prompt = study.prompts.filter(outputs__system__name="human").first()
    outputs = [
        prompt.outputs.get(system__name="human"),
        Output.objects.create(system=other, prompt=prompt, text="A text."),
    ]
    try:
        make_practice(study.sections.get(purpose="training"), outputs, "", by=None)
    except NotNow as refused:
        return [Shown(str(refused))]
    return []


def _no_categories():
    """The form refuses a blank text before; the reader is asked as other programs ask it."""
    try:
        read_categories("\n")
    except ValueError as refused:
        return [Shown(str(refused))]
    return []


def _markdown(study):
    output = Output.objects.filter(system__study=study).first()
    Output.objects.filter(pk=output.pk).update(format="markdown")


def _many_ranked():
    study = builders.draft_study(systems=tuple("abcdefghi"), prompts=4)
    builders.add_ranking(study)
    return study


def _second_criterion(study):
    question = _question(study)
    question.pk, question.key, question.position = None, "other", 2
    question.save()
