"""The lines of answers that were given elsewhere."""

import tempfile
from pathlib import Path

from annotators.imports import Options as AnswerOptions
from annotators.imports import import_answers_and_close_draft
from annotators.models import Annotator, Assignment, Response
from studies.models import Output, Study
from studies.services import lifecycle
from tests import builders
from tests.messages.importers.answer_drafts import (
    choice_draft,
    full_draft,
    humanlike_draft,
    rating_draft,
    spa_draft,
    three_systems,
)
from tests.messages.importers.scenarios import second_arm, shown_by
from tests.messages.lines import FILE, NOTHING

ANSWERS = "annotators/imports"


def answer_options(read, given):
    return lambda: shown_by(lambda: read(given))


SAID = "annotator,prompt_key,shown:A,shown:B,chosen\n"


def multiple(study):
    study.sections.get(protocol="rating").questions.update(
        scale={"kind": "multiple", "options": [{"key": "dull", "label": "Dull"}, {"key": "long", "label": "Long"}]}
    )


def answers(text, *before, make=choice_draft, columns=None, name="a.csv", is_written=False, agreed=None):
    def scenario():
        study = make()
        for change in before:
            change(study)
        return _answered(study, text, columns, name, is_written, agreed)

    return scenario


def _answered(study, text, columns=None, name="a.csv", is_written=False, agreed=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        options = AnswerOptions(columns or {})
        study = Study.objects.get(pk=study.pk)
        return shown_by(
            lambda: import_answers_and_close_draft(
                study, path, by=None, options=options, is_dry_run=not is_written, expected_outcome=agreed
            )
        )


def answered_before(text):
    def change(study):
        shown = _answered(study, text, is_written=True)
        assert Response.objects.filter(assignment__study=study).exists(), shown

    return change


def withdrawn(study):
    from django.utils import timezone

    study.assignments.update(withdrawn_at=timezone.now())


def moved_answers():
    study = choice_draft()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(ONE, encoding="utf-8")
        agreed = import_answers_and_close_draft(study, path, by=None, is_dry_run=True).outcome()
    return _answered(study, ONE + "w2,p003,alpha,beta,alpha\n", is_written=True, agreed=agreed)


def with_own_answers():
    study = builders.choice_study()
    Assignment.objects.create(
        study=study,
        batch=study.batches.first(),
        annotator=Annotator.objects.create(pool="p", external_id="x"),
        design=study.designs.get(),
    )
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return study


ONE = SAID + "w1,p002,alpha,beta,beta\n"
RATED = "annotator,prompt_key,system,value\n"
LINES = {
    f"{ANSWERS}:_read_layout": [
        (
            "the file has no column “worker”, which is declared as annotator",
            FILE,
            answers(ONE, columns={"annotator": "worker"}),
        ),
        (
            "no column annotator; the columns found are: who, prompt_key",
            "write under “Column mapping”",
            answers("who,prompt_key,chosen\nw,p001,alpha\n"),
        ),
        (
            "no column holds an answer",
            "write under “Column mapping”",
            answers("annotator,prompt_key,naturalness\nw,p001,4\n"),
        ),
        (
            "the columns “prompt” and “prompt_key” mean the same",
            FILE,
            answers("annotator,prompt,prompt_key,chosen\nw,p,p,alpha\n"),
        ),
    ],
    f"{ANSWERS}:_parse_row": [
        ("column “annotator”: must not be empty", FILE, answers(SAID + ",p002,alpha,beta,beta\n")),
        ("must be a letter such as A or B, not “7”", FILE, answers("annotator,prompt_key,label\nw,p002,7\n")),
        ("the same system is in two of the shown: columns", FILE, answers(SAID + "w,p002,alpha,alpha,alpha\n")),
    ],
    f"{ANSWERS}:_parse_time": [
        (
            "must be a time such as 2026-11-21T10:00:00Z, not 'noon'",
            "such as",
            answers("annotator,prompt_key,chosen,time\nw,p002,alpha,noon\n"),
        ),
        (
            "must not be in the future: '2999-01-01'",
            FILE,
            answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2999-01-01\n"),
        ),
    ],
    f"{ANSWERS}:from_json": [
        (
            "must be an object with only the key “columns”",
            "must be an object",
            answer_options(AnswerOptions.from_json, {"x": 1}),
        )
    ],
    f"{ANSWERS}:from_text": [
        (
            "line 1: write heval's column name, “=”, and the file's column name",
            "annotator = worker",
            answer_options(AnswerOptions.from_text, "annotator: worker"),
        ),
        (
            "line 2: the column annotator is named twice",
            FILE,
            answer_options(AnswerOptions.from_text, "annotator = a\nannotator = b"),
        ),
    ],
    f"{ANSWERS}:validate_column_mapping": [
        (
            "the value of 'annotator' must be the name of a column of the file",
            "must be the name",
            answer_options(AnswerOptions.from_json, {"columns": {"annotator": 7}}),
        ),
        (
            "heval has no column “worker”",
            "Its columns are",
            answer_options(AnswerOptions.from_text, "worker = annotator"),
        ),
        ("“a” is named twice", FILE, answer_options(AnswerOptions.from_text, "annotator = a\nprompt_key = a")),
    ],
    f"{ANSWERS}:import_answers_and_close_draft": [
        (
            "A study that collects answers cannot import others",
            "Clone it",
            lambda: _answered(builders.choice_study(), ONE),
        ),
        (
            "The study has collected answers, so it cannot import others",
            "Clone it",
            lambda: _answered(with_own_answers(), ONE),
        ),
        (
            "The study is not ready: Section 1, question better: The scale 'stars' does not exist",
            "not ready",
            answers(ONE, lambda s: s.sections.get().questions.update(scale={"kind": "stars"})),
        ),
    ],
    f"{ANSWERS}:_count_new_and_known": [
        (
            "another answer of “w1” to this is already stored",
            FILE,
            answers(SAID + "w1,p002,alpha,beta,alpha\n", answered_before(ONE)),
        ),
        (
            "1 answers were erased or withdrawn after their import",
            NOTHING,
            answers(ONE, answered_before(ONE), withdrawn),
        ),
    ],
    f"{ANSWERS}:_add_findings": [
        ("The study is a draft. Writing these answers freezes its design", "Clone it first to collect", answers(ONE)),
        (
            "1 times have no UTC offset. They are read as UTC",
            NOTHING,
            answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2021-05-17T15:52:44\n"),
        ),
        ("The file has no times", NOTHING, answers(ONE)),
        (
            "The file does not say where each output was shown",
            NOTHING,
            answers("annotator,prompt_key,chosen\nw,p002,alpha\n"),
        ),
    ],
    f"{ANSWERS}:_resolve_arm": [
        ("must name the arm of “w1”; the arms are all, second", "must name the arm of", answers(ONE, second_arm)),
        (
            "puts “w1” into several arms: all, second",
            FILE,
            answers("annotator,arm,prompt_key,chosen\nw1,all,p001,alpha\nw1,second,p002,alpha\n", second_arm),
        ),
        (
            "the study has no arm “x”; the arms are all",
            FILE,
            answers("annotator,arm,prompt_key,chosen\nw1,x,p001,alpha\n"),
        ),
    ],
    f"{ANSWERS}:_resolve_row": [
        (
            "“gpt” is not among the outputs shown",
            FILE,
            answers(
                "annotator,question,prompt_key,shown:A,system,value\nw,source,p002,human,gpt,3\n",
                make=lambda: _one_shown(),
            ),
        ),
        (
            "must name the prompt, because the row names a system",
            FILE,
            answers("annotator,system,value\nw,alpha,3\n", make=rating_draft),
        ),
    ],
    f"{ANSWERS}:_resolve_question": [
        ("the study has no section 9", FILE, answers("annotator,section,prompt_key,chosen\nw,9,p002,alpha\n")),
        (
            "the study does not ask “worse”; its questions are better",
            FILE,
            answers("annotator,question,prompt_key,chosen\nw,worse,p002,alpha\n"),
        ),
        (
            "matches several questions: fluent in section 1",
            "Fill in the columns question and section",
            answers("annotator,prompt_key,system,value\nw,p002,alpha,3\n", make=full_draft),
        ),
    ],
    f"{ANSWERS}:_resolve_output": [
        ("the study has no system “omega”; it has alpha, beta", FILE, answers(SAID + "w,p002,alpha,omega,alpha\n")),
        (
            "“alpha” has no output for “p002”",
            FILE,
            answers(
                ONE, lambda s: Output.objects.filter(system__study=s, system__name="alpha", prompt__key="p002").delete()
            ),
        ),
        (
            "“alpha” has no sample 3 for “p002”",
            FILE,
            answers("annotator,prompt_key,shown:A,shown:B,chosen,sample\nw1,p002,alpha,beta,beta,3\n"),
        ),
    ],
    f"{ANSWERS}:_resolve_item": [
        ("the study has no prompt “x”", FILE, answers(SAID + "w,x,alpha,beta,beta\n")),
        (
            "must be empty: section 1 shows no texts",
            "must be empty",
            answers("annotator,question,prompt_key,choice\nw,fluent,p002,yes\n", make=full_draft),
        ),
        (
            "section 1 shows 2 outputs at a time, but the row has 1",
            "Name the shown outputs",
            answers("annotator,prompt_key,shown:A,chosen\nw,p002,alpha,alpha\n"),
        ),
        (
            "differs from row 2, which is about the same item",
            FILE,
            answers(
                "annotator,prompt_key,shown:A,shown:B,system,value\nw,p002,alpha,beta,alpha,3\nw,p002,beta,alpha,beta,3\n",
                make=rating_draft,
            ),
        ),
    ],
    f"{ANSWERS}:_default_outputs": [
        (
            "must name the system whose output was shown",
            FILE,
            answers("annotator,question,prompt_key,value\nw,source,news-human-001,3\n", make=humanlike_draft),
        ),
    ],
    f"{ANSWERS}:find_field_and_clean_value": [
        ("answers the same question as row 3", FILE, answers(ONE + "w1,p002,alpha,beta,alpha\n")),
    ],
    f"{ANSWERS}:_fill_section_pages": [
        ("“why” is not asked after the earlier answers", FILE, lambda: _not_asked()),
        (
            "is A, but the shown: columns give the letter B",
            FILE,
            answers("annotator,prompt_key,shown:A,shown:B,chosen,label\nw1,p002,alpha,beta,beta,A\n"),
        ),
    ],
    f"{ANSWERS}:_find_fields": [
        (
            "must be one of dull, long: “overall” needs a row for each",
            "must be one of",
            answers("annotator,prompt_key,system,value\nw,p002,alpha,1\n", multiple, make=rating_draft),
        ),
        (
            "“overall” is asked about texts",
            "must not be empty",
            answers("annotator,value\nw,3\n", make=rating_draft),
        ),
        (
            "is not asked about one text",
            "must be empty",
            answers(
                "annotator,question,prompt_key,shown:A,shown:B,value\nw,beta-alpha,p002,alpha,beta,60\n", make=spa_draft
            ),
        ),
        (
            "“overall” is asked about each output",
            "must not be empty",
            answers("annotator,prompt_key,value\nw,p002,3\n", make=rating_draft),
        ),
        (
            "is asked about all outputs together",
            "must be empty",
            answers("annotator,prompt_key,shown:A,shown:B,system,chosen\nw,p002,alpha,beta,alpha,alpha\n"),
        ),
    ],
    f"{ANSWERS}:_parse_value": [
        ("must be a number, not 'high'", "must be a number", answers(RATED + "w,p002,alpha,high\n", make=rating_draft)),
    ],
    f"{ANSWERS}:_clean_value": [
        (
            "answers to “overall” are about no part of an output",
            "must be empty",
            answers("annotator,prompt_key,system,value,part\nw,p002,alpha,3,1\n", make=rating_draft),
        ),
        (
            "is empty. Give the answer or a skip_reason",
            "remove the row",
            answers(RATED + "w,p002,alpha,\n", make=rating_draft),
        ),
        (
            "must be empty: answers to “overall” belong in the column value",
            "must be empty",
            answers("annotator,prompt_key,system,value,text\nw,p002,alpha,3,Good\n", make=rating_draft),
        ),
        ("“9” is not a valid answer to “overall”", FILE, answers(RATED + "w,p002,alpha,9\n", make=rating_draft)),
    ],
    f"{ANSWERS}:_form_value": [
        (
            "no output was shown under “C”",
            FILE,
            answers("annotator,prompt_key,shown:A,shown:B,label\nw,p002,alpha,beta,C\n"),
        ),
        ("“beta” is not among the outputs shown", FILE, lambda: _not_shown()),
    ],
}


def _one_shown():
    """A section that shows one output of a prompt, of which both systems have one."""
    study = builders.draft_study(systems=("human", "gpt"), prompts=8)
    builders.add_humanlike(study, m=4)
    return study


def _not_asked():
    head = "annotator,question,prompt_key,system,value,text\n"
    return answers(head + "w,source,p001,gpt,4,\nw,why,p001,gpt,,It rambles.\n", make=_one_shown)()


def _not_shown():
    return answers(
        "annotator,prompt_key,shown:A,shown:B,chosen\nw,p002,alpha,gamma,beta\n", make=lambda: three_systems()
    )()
