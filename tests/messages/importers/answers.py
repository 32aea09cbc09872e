"""The lines of answers that were given elsewhere."""

import tempfile
from pathlib import Path

from annotators.imports import Options as AnswerOptions
from annotators.imports import import_answers
from annotators.models import Annotator, Assignment, Response
from studies.models import Output, Study
from studies.services import lifecycle
from tests import builders
from tests.messages.importers.scenarios import second_arm, shown_by
from tests.messages.lines import FILE, NOTHING

ANSWERS = "annotators/imports"


def answer_options(read, given):
    return lambda: shown_by(lambda: read(given))


SAID = "annotator,prompt_key,shown:A,shown:B,chosen\n"


def choice_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=12)
    builders.add_choice(study, strategy="any", stopping="none")
    return study


def rating_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4)
    builders.add_rating(study, position=1, m=1)
    return study


def spa_draft() -> Study:
    return builders.spa_draft(with_surveys=False, with_rating=False, systems=("alpha", "beta"))


def full_draft() -> Study:
    return builders.spa_draft(systems=("alpha", "beta"))


def humanlike_draft() -> Study:
    return builders.humanlike_draft(domains=("news",))


def marks_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4)
    builders.add_marks(study, position=1, m=1)
    return study


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
            lambda: import_answers(
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
        agreed = import_answers(study, path, by=None, is_dry_run=True).outcome()
    return _answered(study, ONE + "w2,p003,alpha,beta,alpha\n", is_written=True, agreed=agreed)


def with_own_answers():
    study = builders.choice_study()
    Assignment.objects.create(
        study=study,
        batch=study.batches.first(),
        annotator=Annotator.objects.create(pool="p", external_id="x"),
        design=study.designs.get(),
    )
    lifecycle.close(study, by=None)
    lifecycle.finish_closing(study, by=None)
    return study


ONE = SAID + "w1,p002,alpha,beta,beta\n"
RATED = "annotator,prompt_key,system,value\n"
LINES = {
    f"{ANSWERS}:_layout": [
        (
            "there is no column “worker”, which was said to be annotator",
            FILE,
            answers(ONE, columns={"annotator": "worker"}),
        ),
        (
            "no column annotator; the columns found are: who, prompt_key",
            "write its name under “Columns that have other names in the file”",
            answers("who,prompt_key,chosen\nw,p001,alpha\n"),
        ),
        (
            "no column holds an answer",
            "write its name under “Columns that have other names in the file”",
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
        ("“7” is no letter as A or B", FILE, answers("annotator,prompt_key,label\nw,p002,7\n")),
        ("one system is said to stand in two places", FILE, answers(SAID + "w,p002,alpha,alpha,alpha\n")),
    ],
    f"{ANSWERS}:_parse_time": [
        (
            "must be a time such as 2026-11-21T10:00:00Z, not 'noon'",
            "such as",
            answers("annotator,prompt_key,chosen,time\nw,p002,alpha,noon\n"),
        ),
        (
            "lies in the future: '2999-01-01'",
            FILE,
            answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2999-01-01\n"),
        ),
    ],
    f"{ANSWERS}:from_json": [
        (
            "must be an object with “columns” alone",
            "must be an object",
            answer_options(AnswerOptions.from_json, {"x": 1}),
        )
    ],
    f"{ANSWERS}:from_text": [
        (
            "line 1: write a name of ours, =, and the file's",
            "annotator = worker",
            answer_options(AnswerOptions.from_text, "annotator: worker"),
        ),
        (
            "line 2: annotator is there twice",
            FILE,
            answer_options(AnswerOptions.from_text, "annotator = a\nannotator = b"),
        ),
    ],
    f"{ANSWERS}:check_column_mapping": [
        (
            "'annotator' must be the name of a column of the file",
            "must be the name",
            answer_options(AnswerOptions.from_json, {"columns": {"annotator": 7}}),
        ),
        ("there is no “worker”", "there are", answer_options(AnswerOptions.from_text, "worker = annotator")),
        ("“a” is named twice", FILE, answer_options(AnswerOptions.from_text, "annotator = a\nprompt_key = a")),
    ],
    f"{ANSWERS}:import_answers": [
        (
            "never stand beside those that a study still collects",
            "clone it",
            lambda: _answered(builders.choice_study(), ONE),
        ),
        ("The study has answers of its own", "clone it", lambda: _answered(with_own_answers(), ONE)),
        (
            "The study is not ready: Section 1, question better: There is no scale 'stars'",
            "not ready",
            answers(ONE, lambda s: s.sections.get().questions.update(scale={"kind": "stars"})),
        ),
    ],
    f"{ANSWERS}:_count_new_and_known": [
        (
            "“w1” is stored with another answer to this",
            FILE,
            answers(SAID + "w1,p002,alpha,beta,alpha\n", answered_before(ONE)),
        ),
        (
            "1 answers were erased or withdrawn since they were imported",
            NOTHING,
            answers(ONE, answered_before(ONE), withdrawn),
        ),
    ],
    f"{ANSWERS}:_add_findings": [
        ("The study is a draft. Writing these answers freezes its design", "Clone it to collect", answers(ONE)),
        (
            "1 times do not say how far from UTC they are; they are read as UTC",
            NOTHING,
            answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2021-05-17T15:52:44\n"),
        ),
        ("The file has no times", NOTHING, answers(ONE)),
        ("The file does not say what stood where", NOTHING, answers("annotator,prompt_key,chosen\nw,p002,alpha\n")),
    ],
    f"{ANSWERS}:_resolve_arm": [
        ("must say in which arm “w1” was; the arms are all, second", "must say in which arm", answers(ONE, second_arm)),
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
            "must say of which prompt: a system is named",
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
            "could be several: fluent in section 1",
            "Say which in the columns question and section",
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
            "section 1 shows no texts: leave it empty",
            "leave it empty",
            answers("annotator,question,prompt_key,choice\nw,fluent,p002,yes\n", make=full_draft),
        ),
        (
            "section 1 shows 2 outputs at a time, here are 1",
            "must say which outputs were shown",
            answers("annotator,prompt_key,shown:A,chosen\nw,p002,alpha,alpha\n"),
        ),
        (
            "stands otherwise than in row 2, of the same item",
            FILE,
            answers(
                "annotator,prompt_key,shown:A,shown:B,system,value\nw,p002,alpha,beta,alpha,3\nw,p002,beta,alpha,beta,3\n",
                make=rating_draft,
            ),
        ),
    ],
    f"{ANSWERS}:_default_outputs": [
        (
            "must say whose text was shown",
            FILE,
            answers("annotator,question,prompt_key,value\nw,source,news-human-001,3\n", make=humanlike_draft),
        ),
    ],
    f"{ANSWERS}:_fill_section_pages": [
        ("answers again what row 2 answered", FILE, answers(ONE + "w1,p002,alpha,beta,alpha\n")),
        ("“why” is not asked after what was answered before", FILE, lambda: _not_asked()),
        (
            "says A, but by the columns shown:… that stood under B",
            FILE,
            answers("annotator,prompt_key,shown:A,shown:B,chosen,label\nw1,p002,alpha,beta,beta,A\n"),
        ),
    ],
    f"{ANSWERS}:_find_field": [
        (
            "must be one of dull, long: “overall” has a row for each",
            "must be one of",
            answers("annotator,prompt_key,system,value\nw,p002,alpha,1\n", multiple, make=rating_draft),
        ),
        (
            "“overall” is asked about texts: say of which prompt",
            "say of which prompt",
            answers("annotator,value\nw,3\n", make=rating_draft),
        ),
        (
            "is not asked about one text: leave it empty",
            "leave it empty",
            answers(
                "annotator,question,prompt_key,shown:A,shown:B,value\nw,beta-alpha,p002,alpha,beta,60\n", make=spa_draft
            ),
        ),
        (
            "“overall” is asked about each output: say of which system",
            "say of which system",
            answers("annotator,prompt_key,value\nw,p002,3\n", make=rating_draft),
        ),
        (
            "is asked about all outputs together: leave it empty",
            "leave it empty",
            answers("annotator,prompt_key,shown:A,shown:B,system,chosen\nw,p002,alpha,beta,alpha,alpha\n"),
        ),
    ],
    f"{ANSWERS}:_parse_value": [
        ("must be a number, not 'high'", "must be a number", answers(RATED + "w,p002,alpha,high\n", make=rating_draft)),
    ],
    f"{ANSWERS}:_clean_value": [
        (
            "have several parts, which are not read from files",
            FILE,
            answers("annotator,question,prompt_key,system,part,value\nw,errors,p001,alpha,1,1\n", make=marks_draft),
        ),
        (
            "is empty: give the answer or a skip_reason",
            "leave the row out",
            answers(RATED + "w,p002,alpha,\n", make=rating_draft),
        ),
        (
            "must be empty: “overall” is answered in value",
            "must be empty",
            answers("annotator,prompt_key,system,value,text\nw,p002,alpha,3,Good\n", make=rating_draft),
        ),
        ("“9” is no answer to “overall”", FILE, answers(RATED + "w,p002,alpha,9\n", make=rating_draft)),
    ],
    f"{ANSWERS}:_form_value": [
        ("nothing stood under “C”", FILE, answers("annotator,prompt_key,shown:A,shown:B,label\nw,p002,alpha,beta,C\n")),
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
        "annotator,prompt_key,shown:A,shown:B,chosen\nw,p002,alpha,gamma,beta\n", make=lambda: _three_systems()
    )()


def _three_systems():
    study = builders.draft_study(systems=("alpha", "beta", "gamma"), prompts=12)
    builders.add_choice(study, strategy="any", stopping="none")
    return study
