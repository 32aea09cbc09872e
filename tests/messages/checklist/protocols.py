"""The lines of what a protocol finds missing or unwise in its section."""

from studies.models import Output, Question, System
from studies.protocols import REGISTRY
from studies.protocols.marks import ERRORS, parse_categories
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused
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
from tests.messages.lines import Shown

P = "studies/protocols"


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


LINES = {
    f"{P}/base:draw_pair_items": [
        ("two systems are needed to make a pair and there is 1", "Add another system", on(choice, arm(systems=["alpha"]))),
        ("none of the pairs that the section shows is made of these systems", "Plan a comparison of two", on(
            lambda: choice(("alpha", "beta", "gamma"), pairs="chosen"), arm(systems=["alpha", "gamma"]))),
    ],
    f"{P}/base:draw_items_of_sets": [
        ("each pair of each prompt has been drawn once", "Lower the target", lambda: _all_drawn()),
    ],
    f"{P}/base:pair_problems": [
        ("Annotators must see at least one pair", "#id_m", on(choice, section_with(m=0))),
        ("A pair needs two systems, but the study has 1", "Add a system", on(lambda: choice(("alpha",)))),
        ("No pair is chosen", "Plan a comparison of two systems", on(lambda: choice(pairs="chosen"), without_contrasts)),
        ("No system is marked as the reference", "Mark one under Systems", on(lambda: choice(pairs="reference"))),
        ("No pair is shown", "add a system", on(choice, without_contrasts, references(("alpha", "maximal")))),
        ("names omega, which is not a system of this study", "/change/", on(lambda: choice(order="omega"))),
        ("is planned, but this section does not show its pair", "#contrasts-group", on(
            lambda: choice(("alpha", "beta", "gamma"), pairs="chain", order="alpha\ngamma\nbeta"))),
        ("1 ready-made items do not have exactly two outputs", "/", on(choice, ready_made(1, 2))),
    ],
    f"{P}/humanlike:problems": [
        ("The question with the key “source” is missing", "#questions-group", on(humanlike, without_question("source"))),
        ("Question source must have an even number of points", "#questions-group", on(
            humanlike, lambda s: Question.objects.filter(section__study=s, key="source").update(scale={"kind": "likert", "minimum": 1, "maximum": 5}))),
        ("A question about one text cannot name two systems", "#questions-group", on(humanlike, names_systems)),
        ("Annotators must see at least one text", "#id_m", on(humanlike, section_with(m=0))),
    ],
    f"{P}/base:parse_practice_answers": [
        ("A page shows two texts", "Choose a second text", _practice(choice, 1, better="first")),
        ("No expected answer is entered", "Enter the right answer", _practice(choice, 2)),
    ],
    f"{P}/base:_parse": [
        ("is not among the texts", "Choose one of them", _practice(choice, 2, any_question="third")),
        ("must be a number or a range from 1 to 5", "such as 1-2", _practice(rating, 1, any_question="6")),
    ],
    f"{P}/humanlike:expected_practice_answers": [
        ("First give the section the question “source”", "First give the section", practised(trained, lambda s: (without_practice(s), without_question("source")(s)), "human")),
        ("Practice needs either one text, or a pair", "Practice needs either one text", lambda: _two_humans()),
    ],
    f"{P}/humanlike:_training_problems": [
        ("A training section needs practice items", "Create them on the section's page", on(
            trained, without_practice)),
        ("Arm news gpt3 examples has 3 of 5 practice items of its domain", "/change/", on(trained, lambda s: s.sections.filter(purpose="training").update(m=5))),
        ("gets training here, but its condition is “none”", "#arms-group", on(trained, all_arms(condition="none"))),
        ("This training section comes after a live section", "/change/", on(trained, humanlike_positions)),
    ],
    f"{P}/humanlike:_live_problems": [
        ("1 ready-made items have several outputs", "Give each output its own item", on(humans_alone, ready_made(2))),
        ("No question “why” or “change” asks for reasons", "#questions-group", on(humanlike, without_question("why", "change"))),
        ("Each annotator judges fewer than 4 texts", "#id_m", on(humanlike, section_with(m=2))),
    ],
    f"{P}/humanlike:_drawing_problems": [
        ("Arm all has no human system", "#systems-group", on(humans_alone, lambda s: s.systems.update(is_human=False))),
        ("Arm all has 1 human texts; a batch needs 2", "/", on(humans_alone, no_outputs_but("human", "p001"))),
        ("Two arms have the same domain, systems and condition", "#arms-group", on(humans_alone, arm())),
    ],
    f"{P}/marks:problems": [
        (f"The question with the key “{ERRORS}” is missing", "#questions-group", on(marks, without_question(ERRORS))),
        ("No question “score” scores the whole", "#questions-group", on(marks, without_question("score"))),
        ("Question score must have a scale of points", "#questions-group", on(
            marks, lambda s: Question.objects.filter(section__study=s, key="score").update(scale={"kind": "text"}))),
        ("A question about one output cannot name two systems", "#questions-group", on(marks, names_systems)),
        ("Annotators must see at least one prompt", "#id_m", on(marks, section_with(m=0))),
        ("1 outputs are Markdown, dialogues or images", "/", on(marks, lambda s: _markdown(s))),
    ],
    f"{P}/marks:_errors_problems": [
        (f"Question {ERRORS} must have the scale “a whole number” from 0", "#questions-group", on(marks, of_errors(scale={"kind": "text"}))),
        (f"Question {ERRORS} must reach up to", "#questions-group", on(marks, of_errors(scale={"kind": "number", "minimum": 0, "maximum": 1}))),
        ("has reasons to skip", "Remove them and make the question optional", on(marks, of_errors(skip_reasons=[{"key": "no", "label": "No"}]))),
    ],
    f"{P}/marks:parse_categories": [
        ("Line 1: write “key | label | explanation”", "write “key", on(marks, settings_with(categories="a | b | c | d"))),
    ],
    f"{P}/marks:parse_severities": [
        ("Line 1: write “key | label | weight | explanation”", "write “key", on(marks, settings_with(severities="a | b"))),
        ("Two severity levels have the same weight", "/change/", on(marks, settings_with(severities="a | A | 1\nb | B | 1"))),
    ],
    f"{P}/marks:_parse_lines": [
        ("Line 1: write a key of at most 50 characters and a label", "write a key", on(marks, settings_with(categories=" | Style"))),
    ],
    f"{P}/marks:_parse_weight": [
        ("Line 1: the weight must be a number above 0", "must be a number", on(marks, settings_with(severities="a | A | heavy"))),
    ],
    f"{P}/marks:_require_distinct": [
        ("Write at least one error category", "Write at least one", lambda: _no_categories()),
        ("“style” occurs twice", "/change/", on(marks, settings_with(categories="style | Style\nstyle | Other"))),
    ],
    f"{P}/ranking:problems": [
        ("Arm second shows only one system", "Give it another system", on(ranking, arm(systems=["alpha"]))),
        ("A ranking needs outputs of at least two systems", "Add a system", on(ranking, lambda s: only(s, "alpha"))),
        ("A page ranks 9 outputs at once", "#systems-group", on(lambda: _many_ranked())),
        ("Question place must have the scale “a whole number”", "#questions-group", on(ranking, scale(kind="text"))),
        ("Question place must take numbers from 1 to 3", "#questions-group", on(ranking, scale(kind="number", minimum=1, maximum=2))),
        ("Question place ranks all outputs, so it cannot name two systems", "#questions-group", on(ranking, names_systems)),
        ("Question place has reasons to skip", "Remove them and make", on(
            ranking, question_with(skip_reasons=[{"key": "no", "label": "No"}]))),
        ("Annotators must see at least one prompt", "#id_m", on(ranking, section_with(m=0))),
        ("1 ready-made items have only one output", "/", on(ranking, ready_made(1, 2))),
    ],
    f"{P}/rating:problems": [
        ("Question overall must have a scale of points", "#questions-group", on(rating, scale(kind="percent"))),
        ("All questions ask for words", "#questions-group", on(rating, scale(kind="text"))),
        ("Question overall rates one output", "#questions-group", on(rating, names_systems)),
        ("Annotators must see at least one prompt", "#id_m", on(rating, section_with(m=0))),
    ],
    f"{P}/rating:_reference_problems": [
        ("There is a maximal reference but no minimal one", "#systems-group", on(rating, references(("alpha", "maximal")))),
        ("Utilities need a number between two ends", "#questions-group", on(
            rating, references(("alpha", "maximal"), ("beta", "minimal")))),
        ("is about utilities, which need a maximal and a minimal reference", "#contrasts-group", on(rating, contrast(estimand="utility"))),
    ],
    f"{P}/relative:problems": [
        ("cannot name two systems, because sides are random", "#questions-group", on(relative, names_systems)),
        ("must have a scale of points", "#questions-group", on(relative, scale(kind="text"))),
        ("must have a middle point", "#questions-group", on(relative, scale(kind="likert", labels=LABELS[:4]))),
        ("must have words for each point", "#questions-group", on(relative, scale(kind="likert", minimum=1, maximum=5))),
        ("must contain {second} in its first point", "#questions-group", on(relative, scale(kind="likert", labels=LABELS))),
        ("Section 1 does not show pairs, so this section cannot reuse its items", "/change/", on(reused_by_relative)),
    ],
    f"{P}/spa:_unseen_problems": [
        ("Arm second does not show beta", "Add the system to the arm", on(spa, arm(systems=["alpha"]))),
    ],
    f"{P}/spa:problems": [
        ("Annotators read maximal and minimal references here", "Give that section its own items", on(shown_again)),
        ("The section shows fewer than 4 prompts", "#id_m", on(spa, section_with(m=2))),
        ("Annotators must see at least one prompt", "#id_m", on(spa, section_with(m=0))),
        ("does not name two systems", "#questions-group", on(spa, question_with(x=None, y=None))),
        ("must contain {x} and {y}", "#questions-group", on(spa, question_with(text="Which?"))),
        ("must have the scale “a chance from 0 to 100”", "#questions-group", on(spa, scale(kind="text"))),
        ("A pair is asked in one direction only", "#questions-group", on(lambda: spa(both=False))),
    ],
    f"{P}/survey:problems": [
        ("A survey shows no items", "Set m to 0", on(full_spa, lambda s: s.sections.filter(protocol="survey").update(m=1))),
        ("asks for one of the outputs shown, but a survey shows none", "#questions-group", on(full_spa, of_survey(scale={"kind": "output"}))),
    ],
    f"{P}/two_choice:clean_workers": [
        ("An even number may have no majority", "Choose an odd number", on(lambda: choice(workers=4))),
    ],
    f"{P}/two_choice:problems": [
        ("the section reuses those of another one", "Give it its own items", on(choice_shown_again)),
        ("Question better must have the scale “one of the outputs shown”", "#questions-group", on(choice, scale(kind="text"))),
        ("Question better cannot name two systems", "#questions-group", on(choice, names_systems)),
        ("Question better has no help", "#questions-group", on(choice, question_with(help=""))),
        ("The section asks about several criteria for the same pair", "#questions-group", on(choice, lambda s: _second_criterion(s))),
    ],
    f"{P}/two_choice:_strategy_problems": [
        ("The strategy needs 2 annotators per batch, but the study has 1", "#id_annotators_per_batch", on(lambda: choice(strategy="max_three"))),
        ("A labelling strategy needs balanced coverage", "needs balanced coverage", on(choice, study_with(coverage="independent"))),
        ("Several arms see all items of this section", "#arms-group", on(choice, arm())),
        ("One annotator answers all 6 batches", "Allow 6 batches per annotator", on(lambda: choice(strategy="fixed"))),
    ],
    f"{P}/two_choice:_ready_made_problems": [
        ("2 items are in several ready-made batches", "/", on(choice, ready_made(2, 2, batches=2))),
        ("Third labels need all ready-made batches to be open", "Set the target to 8", on(
            lambda: choice(strategy="max_three"), study_with(annotators_per_batch=2), ready_made(2, 2, batches=4))),
    ],
    f"{P}/two_choice:_supply_problems": [
        ("12 items in batches of 2 give 6 places with this strategy, but the target is 90", "#id_target_n", on(choice, study_with(target_n=90))),
    ],
    f"{P}/two_choice:_stopping_problems": [
        ("A stopping rule needs a target", "#id_target_n", on(stopping(), study_with(target_n=None))),
        ("The stopping rule needs a primary contrast", "#contrasts-group", on(stopping(), without_contrasts)),
        ("a fixed worker is only one", "Choose another rule", on(stopping(strategy="fixed"))),
        ("has no margin", "#contrasts-group", on(stopping())),
        ("so its result is about exactly these prompts", "or no stopping rule", on(stopping(), lambda s: s.contrasts.update(population="people_and_prompts"))),
        ("Annotators may take several batches. The stopping rule counts only the first", "#id_batches_per_annotator", on(stopping(), study_with(batches_per_annotator=2))),
        ("Hoeffding's bound is valid for one check", "/change/", on(stopping(stopping="first"))),
    ],
    f"{P}/base:_build_field": [
        ("A question about the outputs shown is asked under Two choices alone", "asked under Two choices", previewed(
            full_spa, of_survey(scale={"kind": "output"}))),
    ],
    f"{P}/base:parse_scale": [
        ("The scale 'stars' does not exist", "Choose one of", on(spa, scale(kind="stars"))),
        ("A scale has no setting colour", "#questions-group", on(spa, scale(kind="percent", colour="red"))),
        ("A scale's lowest value must be below its highest", "must be below", on(spa, scale(kind="number", minimum=5, maximum=5))),
        ("A scale of points has at most 20 points", "use a number between two ends", on(spa, scale(kind="likert", minimum=1, maximum=40))),
        ("Give at least two answers to choose from", "at least two", on(full_spa, of_survey(scale={"kind": "choice", "options": []}))),
    ],
}  # fmt: skip


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
