"""The lines of what a protocol finds missing or unwise in its section."""

from studies.models import Output, Question, System
from studies.protocols.marks import ERRORS
from studies.protocols.marks.codebook import parse_categories
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
LINES = {
    f"{P}/base:draw_pairs": [
        ("two systems are needed to make a pair and there is 1", "Add another system", on(choice, arm(systems=["alpha"]))),
        ("none of the pairs that the section shows is made of these systems", "Plan a comparison of two", on(
            lambda: choice(("alpha", "beta", "gamma"), pairs="chosen"), arm(systems=["alpha", "gamma"]))),
        ("each pair of each prompt has been drawn once", "Lower the target", lambda: _all_drawn()),
    ],
    f"{P}/base:pair_problems": [
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
    f"{P}/humanlike:expected_practice_answers": [
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
    f"{P}/marks:problems": [
        (f"There must be a question with the key “{ERRORS}”", "#questions-group", on(marks, without_question(ERRORS))),
        ("No question “score” judges the whole", "#questions-group", on(marks, without_question("score"))),
        ("Question score must be asked between two ends", "#questions-group", on(
            marks, lambda s: Question.objects.filter(section__study=s, key="score").update(scale={"kind": "text"}))),
        ("A question about one output cannot name two systems", "#questions-group", on(marks, names_systems)),
        ("Annotators must see at least one prompt", "#id_m", on(marks, section_with(m=0))),
        ("1 outputs are Markdown, dialogues or images", "/", on(marks, lambda s: _markdown(s))),
    ],
    f"{P}/marks:_errors_problems": [
        (f"Question {ERRORS} must be asked as a whole number from 0", "#questions-group", on(marks, of_errors(scale={"kind": "text"}))),
        (f"Question {ERRORS} must reach up to", "#questions-group", on(marks, of_errors(scale={"kind": "number", "minimum": 0, "maximum": 1}))),
        ("offers ways not to answer", "let it be left empty instead", on(marks, of_errors(skip_reasons=[{"key": "no", "label": "No"}]))),
    ],
    f"{P}/marks:parse_categories": [
        ("Line 1: write “key | label | explanation”", "write “key", on(marks, settings_with(categories="a | b | c | d"))),
    ],
    f"{P}/marks:parse_severities": [
        ("Line 1: write “key | label | weight | explanation”", "write “key", on(marks, settings_with(severities="a | b"))),
        ("Two grades have the same weight", "/change/", on(marks, settings_with(severities="a | A | 1\nb | B | 1"))),
    ],
    f"{P}/marks:_parse_lines": [
        ("Line 1: a key of at most 50 characters and a label are needed", "are needed", on(marks, settings_with(categories=" | Style"))),
    ],
    f"{P}/marks:_parse_weight": [
        ("Line 1: the weight must be a number above 0", "must be a number", on(marks, settings_with(severities="a | A | heavy"))),
    ],
    f"{P}/marks:_require_distinct": [
        ("At least one kind of error is needed", "is needed", lambda: _no_categories()),
        ("“style” stands twice", "/change/", on(marks, settings_with(categories="style | Style\nstyle | Other"))),
    ],
    f"{P}/ranking:problems": [
        ("Arm second shows the outputs of one system", "Give it another system", on(ranking, arm(systems=["alpha"]))),
        ("There is nothing to rank", "two systems at least", on(ranking, lambda s: only(s, "alpha"))),
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
    f"{P}/base:_build_field": [
        ("A question about the outputs shown is asked under Two choices alone", "asked under Two choices", previewed(
            full_spa, of_survey(scale={"kind": "output"}))),
    ],
    f"{P}/base:read_scale": [
        ("There is no scale 'stars'", "there are", on(spa, scale(kind="stars"))),
        ("A scale has no colour", "#questions-group", on(spa, scale(kind="percent", colour="red"))),
        ("A scale's lowest value must be below its highest", "must be below", on(spa, scale(kind="number", minimum=5, maximum=5))),
        ("A scale of points has at most 20 of them", "use a number between two ends", on(spa, scale(kind="likert", minimum=1, maximum=40))),
        ("The answers to choose from must be at least two", "at least two", on(full_spa, of_survey(scale={"kind": "choice", "options": []}))),
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
