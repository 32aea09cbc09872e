"""The lines of what a protocol finds missing or unwise in its section."""

from studies.models import Output, Question, System
from studies.protocols import REGISTRY
from studies.protocols.marks import ERRORS, parse_categories
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused
from studies.services.questions import SIZE_SCALE
from tests import builders
from tests.messages.checklist.drafts import (
    LABELS,
    all_arms,
    arm,
    choice,
    choice_shown_again,
    contrast,
    first_question,
    full_spa,
    humanlike,
    humanlike_positions,
    humans_alone,
    marks,
    names_systems,
    no_outputs_but,
    of_errors,
    of_survey,
    on,
    only,
    practised,
    previewed,
    question_with,
    ranking,
    rating,
    ready_made,
    references,
    relative,
    reused_by_relative,
    scale,
    section_with,
    settings_with,
    shown_again,
    spa,
    stopping,
    study_with,
    trained,
    without_contrasts,
    without_practice,
    without_question,
)
from tests.messages.lines import At, Shown, only_informs


def rewrites(n=1, **limits):
    """A change: the first section asks this many times to rewrite its texts."""

    def change(study):
        section = study.sections.get(purpose="live")
        columns = {"section": section, "text": "Rewrite it.", "scale": {"kind": "rewrite", **limits}}
        Question.objects.bulk_create(Question(position=8 + one, key=f"rewrite{one}", **columns) for one in range(n))

    return change


def _empty(study):
    output = Output.objects.filter(system__study=study).first()
    Output.objects.filter(pk=output.pk).update(text="", is_empty=True)


def _practice(make, n_outputs, any_question="", **given):
    """What is said where these expected answers cannot be those of a practice item. ``any_question``: to each question."""

    def scenario():
        study = make()
        section = study.sections.order_by("position").first()
        section.purpose = "training"
        answers = given | ({question.key: any_question for question in section.questions.all()} if any_question else {})
        try:
            REGISTRY[section.protocol].expected_practice_answers(section, [("alpha", False)] * n_outputs, answers)
        except ValueError as refused:
            return [Shown(str(refused))]
        return []

    return scenario


CHECKLIST = {
    "two systems are needed": on(choice, arm(systems=["alpha"])),
    "none of the pairs": on(
        lambda: choice(("alpha", "beta", "gamma"), pairs="chosen"), arm(systems=["alpha", "gamma"])
    ),
    "each pair of each": lambda: _all_drawn(),
    "Annotators must see at least one pair": At("#id_m", on(choice, section_with(m=0))),
    "A pair needs": on(lambda: choice(("alpha",))),
    "No pair is chosen": on(lambda: choice(pairs="chosen"), without_contrasts),
    "No system is marked": on(lambda: choice(pairs="reference")),
    "No pair is shown": on(choice, without_contrasts, references(("alpha", "maximal"))),
    "The order of the systems": At("/change/", on(lambda: choice(order="omega"))),
    "The comparison … is planned": At(
        "#contrasts-group", on(lambda: choice(("alpha", "beta", "gamma"), pairs="chain", order="alpha\ngamma\nbeta"))
    ),
    "ready-made items do": At("/", on(choice, ready_made(1, 2))),
    "The question with the key “…” is missing. Add one that asks who wrote": At(
        "#questions-group", on(humanlike, without_question("source"))
    ),
    "Question … must have an even": At(
        "#questions-group",
        on(
            humanlike,
            lambda s: Question.objects.filter(section__study=s, key="source").update(
                scale={"kind": "likert", "minimum": 1, "maximum": 5}
            ),
        ),
    ),
    "A question about one text": At("#questions-group", on(humanlike, names_systems)),
    "Annotators must see at least one text": At("#id_m", on(humanlike, section_with(m=0))),
    "A page shows": _practice(choice, 1, better="first"),
    "No expected answer": _practice(choice, 2),
    "The expected answer to … is not among": _practice(choice, 2, any_question="third"),
    "The expected answer to … must be a number": _practice(rating, 1, any_question="6"),
    "First give the section": practised(
        trained, lambda s: (without_practice(s), without_question("source")(s)), "human"
    ),
    "Practice needs either": lambda: _two_humans(),
    "A training section": on(trained, without_practice),
    "Arm … has … of … practice": At(
        "/change/", on(trained, lambda s: s.sections.filter(purpose="training").update(m=5))
    ),
    "Arm … gets": At("#arms-group", on(trained, all_arms(condition="none"))),
    "This training section": At("/change/", on(trained, humanlike_positions)),
    "ready-made items have several": on(humans_alone, ready_made(2)),
    "No question “…” or “…” asks": At("#questions-group", on(humanlike, without_question("why", "change"))),
    "Each annotator judges": At("#id_m", on(humanlike, section_with(m=2))),
    "Arm … has no … system": At("#systems-group", on(humans_alone, lambda s: s.systems.update(is_human=False))),
    "Arm … has … … texts": At("/", on(humans_alone, no_outputs_but("human", "p001"))),
    "Two arms have the same": At("#arms-group", on(humans_alone, arm())),
    "The question with the key “…” is missing. Add one that asks for the errors": At(
        "#questions-group", on(marks, without_question(ERRORS))
    ),
    "No question “…” scores": At("#questions-group", on(marks, without_question("score"))),
    "studies/protocols/marks:problems: Question … must have a scale": At(
        "#questions-group",
        on(marks, lambda s: Question.objects.filter(section__study=s, key="score").update(scale={"kind": "text"})),
    ),
    "A question about one output": At("#questions-group", on(marks, names_systems)),
    "studies/protocols/marks:problems: Annotators must see": At("#id_m", on(marks, section_with(m=0))),
    "outputs are Markdown": At("/", on(marks, lambda s: _markdown(s))),
    "Question … must have the scale “a whole number” from 0": At(
        "#questions-group", on(marks, of_errors(scale={"kind": "text"}))
    ),
    "Question … must reach": At(
        "#questions-group", on(marks, of_errors(scale={"kind": "number", "minimum": 0, "maximum": 1}))
    ),
    "Question … has reasons to skip. Remove": on(marks, of_errors(skip_reasons=[{"key": "no", "label": "No"}])),
    "Line …: write “key | label | explanation”": on(marks, settings_with(categories="a | b | c | d")),
    "Line …: write “key | label | weight": on(marks, settings_with(severities="a | b")),
    "Two severity levels": At("/change/", on(marks, settings_with(severities="a | A | 1\nb | B | 1"))),
    "Line …: write a key": on(marks, settings_with(categories=" | Style")),
    "Line …: the weight": on(marks, settings_with(severities="a | A | heavy")),
    "Write at least one ….": lambda: _no_categories(),
    "occurs twice. Remove": At("/change/", on(marks, settings_with(categories="style | Style\nstyle | Other"))),
    "Arm … shows only one system": on(ranking, arm(systems=["alpha"])),
    "A ranking needs": on(ranking, lambda s: only(s, "alpha")),
    "A page ranks": At("#systems-group", on(lambda: _many_ranked())),
    "Question … must have the scale “a whole number”, for the place": At(
        "#questions-group", on(ranking, scale(kind="text"))
    ),
    "Question … must take": At("#questions-group", on(ranking, scale(kind="number", minimum=1, maximum=2))),
    "Question … ranks": At("#questions-group", on(ranking, names_systems)),
    "Question … has reasons to skip, but a missing": on(
        ranking, question_with(skip_reasons=[{"key": "no", "label": "No"}])
    ),
    "studies/protocols/ranking:problems: Annotators must see": At("#id_m", on(ranking, section_with(m=0))),
    "ready-made items have only one output": At("/", on(ranking, ready_made(1, 2))),
    "Question … must have a scale of points or a number between two ends. A reason": At(
        "#questions-group", on(rating, scale(kind="percent"))
    ),
    "All questions ask": At("#questions-group", on(rating, scale(kind="text"))),
    "the ends of the scale have no words": At("#questions-group", on(rating, scale(kind="likert", maximum=7))),
    "a text is rewritten on": At("#questions-group", on(rating, scale(kind="rewrite"))),
    "questions that have the same": At("#questions-group", on(humanlike, rewrites(2))),
    "rewrites keep words": At(
        "#questions-group",
        on(humanlike, lambda s: (rewrites()(s), study_with(stimuli_source="https://example.org")(s))),
    ),
    "outputs have no text": At("#questions-group", on(humanlike, lambda s: (rewrites()(s), _empty(s)))),
    "outputs have more than": At("#questions-group", on(humanlike, rewrites(maximum_length=5))),
    "Question … rates": At("#questions-group", on(rating, names_systems)),
    "studies/protocols/rating:problems: Annotators must see": At("#id_m", on(rating, section_with(m=0))),
    "There is a … reference": At("#systems-group", on(rating, references(("alpha", "maximal")))),
    "Utilities need a number": At(
        "#questions-group", on(rating, references(("alpha", "maximal"), ("beta", "minimal")))
    ),
    "is about utilities": At("#contrasts-group", on(rating, contrast(estimand="utility"))),
    "studies/protocols/relative:problems: Question … cannot name": At("#questions-group", on(relative, names_systems)),
    "Question … must have a scale of points.": At("#questions-group", on(relative, scale(kind="text"))),
    "Question … must have a middle": At("#questions-group", on(relative, scale(kind="likert", labels=LABELS[:4]))),
    "Question … must have words": At("#questions-group", on(relative, scale(kind="likert", minimum=1, maximum=5))),
    "Question … must contain … in its first point": At(
        "#questions-group", on(relative, scale(kind="likert", labels=LABELS))
    ),
    "items are reused does not show": At("/change/", on(reused_by_relative)),
    "Arm … does": on(spa, arm(systems=["alpha"])),
    "Annotators read maximal": on(shown_again),
    "The section shows": At("#id_m", on(spa, section_with(m=2))),
    "studies/protocols/spa:problems: Annotators must see": At("#id_m", on(spa, section_with(m=0))),
    "Question … does": At("#questions-group", on(spa, question_with(x=None, y=None))),
    "Question … must contain {x}": At("#questions-group", on(spa, question_with(text="Which?"))),
    "Question … must have the scale “a chance": At("#questions-group", on(spa, scale(kind="text"))),
    "Another section reuses these items, but": At("/change/", on(shown_again, settings_with(prompts="own"))),
    "Systems have prompts of their own": At("/change/", on(spa, settings_with(prompts="own"))),
    "prompts of its own and annotators read": At("/", on(spa, section_with(m=9), settings_with(prompts="own"))),
    "Question … asks how much better": At(
        "#questions-group", on(spa, question_with(scale=SIZE_SCALE, criterion="plot"))
    ),
    "All questions about how much": At(
        "#questions-group",
        on(
            spa,
            lambda s: (
                Question.objects.filter(section__study=s).exclude(pk=first_question(s).pk).update(scale=SIZE_SCALE)
            ),
            question_with(scale=SIZE_SCALE | {"minimum": -2, "maximum": 2}),
        ),
    ),
    "A pair is asked": At("#questions-group", on(lambda: spa(both=False))),
    "A survey shows": on(full_spa, lambda s: s.sections.filter(protocol="survey").update(m=1)),
    "Question … asks for one": At("#questions-group", on(full_spa, of_survey(scale={"kind": "output"}))),
    "An even number": on(lambda: choice(workers=4)),
    "The labelling strategy": on(choice_shown_again),
    "studies/protocols/two_choice:problems: Question … must have the scale": At(
        "#questions-group", on(choice, scale(kind="text"))
    ),
    "studies/protocols/two_choice:problems: Question … cannot name": At("#questions-group", on(choice, names_systems)),
    "Question … has no help": At("#questions-group", on(choice, question_with(help=""))),
    "The section asks": At("#questions-group", on(choice, lambda s: _second_criterion(s))),
    "The strategy needs": At("#id_annotators_per_batch", on(lambda: choice(strategy="max_three"))),
    "A labelling strategy": on(choice, study_with(coverage="independent")),
    "Several arms see": At("#arms-group", on(choice, arm())),
    "One annotator answers": on(lambda: choice(strategy="fixed")),
    "items are in several": At("/", on(choice, ready_made(2, 2, batches=2))),
    "Third labels need": on(
        lambda: choice(strategy="max_three"), study_with(annotators_per_batch=2), ready_made(2, 2, batches=4)
    ),
    "items in batches": At("#id_target_n", on(choice, study_with(target_n=90))),
    "A stopping rule": At("#id_target_n", on(stopping(), study_with(target_n=None))),
    "The stopping rule needs": At("#contrasts-group", on(stopping(), without_contrasts)),
    "The anytime-valid rule": on(stopping(strategy="fixed")),
    "has no margin. The report": At("#contrasts-group", on(stopping())),
    "the anytime-valid rule": on(stopping(), lambda s: s.contrasts.update(population="people_and_prompts")),
    "Annotators may take several batches. The stopping": At(
        "#id_batches_per_annotator", on(stopping(), study_with(batches_per_annotator=2))
    ),
    "Hoeffding's bound is valid": At("/change/", on(stopping(stopping="first"))),
    "A question about the outputs": only_informs(previewed(full_spa, of_survey(scale={"kind": "output"}))),
    "The scale … does": on(spa, scale(kind="stars")),
    "A scale has no setting": At("#questions-group", on(spa, scale(kind="percent", colour="red"))),
    "A scale's lowest": on(spa, scale(kind="number", minimum=5, maximum=5)),
    "A scale of points": on(spa, scale(kind="likert", minimum=1, maximum=40)),
    "Give at least two": on(full_spa, of_survey(scale={"kind": "choice", "options": []})),
}


def _all_drawn():
    """More places than the items of a strategy that draws each once."""
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4, target_n=2, target_cap=40)
    builders.add_choice(study, m=2)
    study = builders.launched(study)
    try:
        lifecycle.open_more_places(study, 10, by=None)
    except lifecycle.ActionRefused as refused:
        return [Shown(str(refused))]
    return []


def _two_humans():
    from studies.services.known_answers import create_practice_item_and_delete_test_runs

    study = trained()
    other = System.objects.create(study=study, name="another", is_human=True)
    prompt = study.prompts.filter(outputs__system__name="human").first()
    outputs = [
        prompt.outputs.get(system__name="human"),
        Output.objects.create(system=other, prompt=prompt, text="A text."),
    ]
    try:
        create_practice_item_and_delete_test_runs(study.sections.get(purpose="training"), outputs, "", by=None)
    except ActionRefused as refused:
        return [Shown(str(refused))]
    return []


def _no_categories():
    """The form refuses a blank text before; the reader is asked as other programs ask it."""
    try:
        parse_categories("\n")
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
    question = first_question(study)
    question.pk, question.key, question.position = None, "other", 2
    question.save()
