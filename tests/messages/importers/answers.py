"""The lines of answers that were given elsewhere."""

import json
import tempfile
from datetime import timedelta
from pathlib import Path
from unittest import mock

from django.utils import timezone

from annotators.imports import Options as AnswerOptions
from annotators.imports import import_answers_and_close_draft, options_with_roles
from annotators.models import Annotator, Assignment, Response
from studies.imports.tables import run
from studies.models import Job, Output, Study
from studies.services import jobs, lifecycle
from tests import builders
from tests.admin_pages import logged_in, study_url
from tests.messages.importers.answer_drafts import (
    choice_draft,
    full_draft,
    humanlike_draft,
    rating_draft,
    spa_draft,
    three_systems,
)
from tests.messages.importers.scenarios import second_arm, shown_by
from tests.messages.lines import At, Shown, only_informs
from tests.studies.imports import judged


def answer_options(read, given):
    return lambda: shown_by(lambda: read(given))


def line(data: bytes, **values) -> str:
    """The first line of a tool's file with other values; None removes one."""
    row = json.loads(data.splitlines()[0]) | values
    return json.dumps({name: value for name, value in row.items() if value is not None})


SAID = "annotator,prompt_key,shown:A,shown:B,chosen\n"


def multiple(study):
    study.sections.get(protocol="rating").questions.update(
        scale={"kind": "multiple", "options": [{"key": "dull", "label": "Dull"}, {"key": "long", "label": "Long"}]}
    )


def answers(text, *before, make=choice_draft, columns=None, name="a.csv", is_written=False, agreed=None, most=500_000):
    def scenario():
        study = make()
        for change in before:
            change(study)
        with mock.patch("annotators.imports.run.MAX_ANSWERS", most):
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
    study.assignments.update(withdrawn_at=timezone.now())


def importing(study):
    """A study into which another process imports answers."""
    Job.objects.create(
        kind=run.KIND,
        study=study,
        state=Job.State.RUNNING,
        holder="another",
        leased_until=timezone.now() + timedelta(minutes=1),
        arguments={"is_confirmed": True, "imports": "answers"},
    )
    return study


def import_without_process():
    job = Job.objects.create(kind=run.KIND, study=choice_draft())
    jobs.claim_and_run_job(job.pk)
    return [Shown(Job.objects.get(pk=job.pk).error)]


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
BY_TEXT = "annotator,prompt_text,system,value\nw,{},alpha,3\n"


def equal_texts(study):
    study.prompts.update(text="A tale.")


def _tried_without_question():
    owner = builders.user()
    page = logged_in(owner).post(study_url(builders.draft_study(owner=owner), "new/try/"))
    return [Shown(page.context["refusal"])]


IMPORTERS = {
    "The study has no question": _tried_without_question,
    "the file has no column “…”, which is declared": answers(ONE, columns={"annotator": "worker"}),
    "Columns that were": only_informs(answers("worker,prompt_key,chosen\nw,p001,alpha\n")),
    "Annotators whose ids": answers(SAID + "W,p001,alpha,beta,beta\nw,p002,alpha,beta,beta\n"),
    "A spreadsheet shortened": answers(SAID + "1.2E+18,p001,alpha,beta,beta\n"),
    "no column annotator": answers("who,prompt_key,chosen\nw,p001,alpha\n"),
    "no column holds": answers("annotator,prompt_key,remark\nw,p001,Nice!\n"),
    "propose_roles: the columns “…” and “…” mean": answers("annotator,prompt,prompt_key,chosen\nw,p,p,alpha\n"),
    "_base: must not be empty": At("column “annotator”", answers(SAID + ",p002,alpha,beta,beta\n")),
    "is a placeholder": answers(SAID + "[%MID%],p002,alpha,beta,beta\n"),
    "must be a letter": answers("annotator,prompt_key,label\nw,p002,7\n"),
    "the same system": answers(SAID + "w,p002,alpha,alpha,alpha\n"),
    "must be a time": answers("annotator,prompt_key,chosen,time\nw,p002,alpha,noon\n"),
    "must not be in the future": answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2999-01-01\n"),
    "options: must be an object": answer_options(AnswerOptions.from_json, {"x": 1}),
    "has no role or no column": answer_options(AnswerOptions.from_texts, ["annotator: worker"]),
    "The role “…” is given": answer_options(AnswerOptions.from_texts, ["annotator=a", "annotator=b"]),
    "The role “…” is chosen": lambda: shown_by(
        lambda: options_with_roles({}, [("annotator", "a"), ("annotator", "b")])
    ),
    "The file has more than … answers": answers(
        "annotator,prompt_key,system,overall\nw,p002,alpha,3\n", make=rating_draft, most=0
    ),
    "columns: the value": answer_options(AnswerOptions.from_json, {"columns": {"annotator": 7}}),
    "columns: heval has no column": only_informs(answer_options(AnswerOptions.from_texts, ["worker=annotator"])),
    "columns: “…” is named": only_informs(answer_options(AnswerOptions.from_texts, ["annotator=a", "prompt_key=a"])),
    "The process that imported": import_without_process,
    "A study that collects": lambda: _answered(builders.choice_study(), ONE),
    "The study has collected": lambda: _answered(with_own_answers(), ONE),
    "The study is not ready": answers(ONE, lambda s: s.sections.get().questions.update(scale={"kind": "stars"})),
    "another answer of “…” to this is already": answers(SAID + "w1,p002,alpha,beta,alpha\n", answered_before(ONE)),
    "answers were erased": only_informs(answers(ONE, answered_before(ONE), withdrawn)),
    "The study is a draft": answers(ONE),
    "times have no UTC": only_informs(answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2021-05-17T15:52:44\n")),
    "The file has no times": only_informs(answers(ONE)),
    "The file does not say where": only_informs(answers("annotator,prompt_key,chosen\nw,p002,alpha\n")),
    "The file does not say who annotated": answers(line(judged.POTATO, user_id=None), name="a.jsonl"),
    "The file is from doccano": answers(judged.DOCCANO.decode(), name="a.jsonl"),
    "The file holds judgements": answers(line(judged.MT_JUDGED, judge=["gpt-4", "pair-v2"]), name="a.jsonl"),
    "The file holds …: texts": answers(judged.EVERY_EVAL.decode(), name="a.jsonl"),
    "The file has nothing": answers(line(judged.POTATO, label_annotations={}), name="a.jsonl"),
    "must name the arm": answers(ONE, second_arm),
    "puts “…” into": answers("annotator,arm,prompt_key,chosen\nw1,all,p001,alpha\nw1,second,p002,alpha\n", second_arm),
    "the study has no arm “…”; the arms": answers("annotator,arm,prompt_key,chosen\nw1,x,p001,alpha\n"),
    "_resolve_row: “…” is not among": answers(
        "annotator,question,prompt_key,shown:A,system,value\nw,source,p002,human,gpt,3\n", make=lambda: _one_shown()
    ),
    "must name the prompt": answers("annotator,system,value\nw,alpha,3\n", make=rating_draft),
    "the study has no section": answers("annotator,section,prompt_key,chosen\nw,9,p002,alpha\n"),
    "the study does not ask": answers("annotator,question,prompt_key,chosen\nw,worse,p002,alpha\n"),
    "matches several questions": answers("annotator,prompt_key,system,value\nw,p002,alpha,3\n", make=full_draft),
    "the study has no system “…”; it has ….": answers(SAID + "w,p002,alpha,omega,alpha\n"),
    "no prompt of the study has the text": answers(BY_TEXT.format("Nothing"), make=rating_draft),
    "is the same in several": answers(BY_TEXT.format("A tale."), equal_texts, make=rating_draft),
    "is not as heval exports": answers("annotator,prompt,chosen,shown_outputs\nw,p002,alpha,alpha\n"),
    "are of rejected": answers("annotator,prompt_key,chosen,AssignmentStatus\nw,p002,alpha,Rejected\n"),
    "rows of this export": only_informs(
        answers("annotator,prompt,chosen_system,is_erased\nw,p002,alpha,0\nw,p003,,1\n")
    ),
    "empty cells are": only_informs(
        answers("annotator,prompt_key,system,overall\nw,p002,alpha,3\nw,p003,alpha,\n", make=rating_draft)
    ),
    "has no output": answers(
        ONE, lambda s: Output.objects.filter(system__study=s, system__name="alpha", prompt__key="p002").delete()
    ),
    "has no sample": answers("annotator,prompt_key,shown:A,shown:B,chosen,sample\nw1,p002,alpha,beta,beta,3\n"),
    "the study has no prompt": answers(SAID + "w,x,alpha,beta,beta\n"),
    "must be empty: section": answers("annotator,question,prompt_key,choice\nw,fluent,p002,yes\n", make=full_draft),
    "section … shows … outputs": answers("annotator,prompt_key,shown:A,chosen\nw,p002,alpha,alpha\n"),
    "differs from row …, which is about": answers(
        "annotator,prompt_key,shown:A,shown:B,system,value\nw,p002,alpha,beta,alpha,3\nw,p002,beta,alpha,beta,3\n",
        make=rating_draft,
    ),
    "must name the system": answers(
        "annotator,question,prompt_key,value\nw,source,news-human-001,3\n", make=humanlike_draft
    ),
    "answers the same": answers(ONE + "w1,p002,alpha,beta,alpha\n"),
    "is not asked after": lambda: _not_asked(),
    "is …, but the shown": answers("annotator,prompt_key,shown:A,shown:B,chosen,label\nw1,p002,alpha,beta,beta,A\n"),
    "must be one of …: “…” needs": answers(
        "annotator,prompt_key,system,value\nw,p002,alpha,1\n", multiple, make=rating_draft
    ),
    "must not be empty: “…” is asked about texts": answers("annotator,value\nw,3\n", make=rating_draft),
    "must be empty: “…” is not asked": answers(
        "annotator,question,prompt_key,shown:A,shown:B,value\nw,beta-alpha,p002,alpha,beta,60\n", make=spa_draft
    ),
    "must not be empty: “…” is asked about each": answers("annotator,prompt_key,value\nw,p002,3\n", make=rating_draft),
    "must be empty: “…” is asked": answers(
        "annotator,prompt_key,shown:A,shown:B,system,chosen\nw,p002,alpha,beta,alpha,alpha\n"
    ),
    "Enter a number, or leave": answers(RATED + "w,p002,alpha,high\n", make=rating_draft),
    "Write a decimal": answers(RATED + 'w,p002,alpha,"0,5"\n', make=rating_draft),
    "Write it with the digits": answers(RATED + "w,p002,alpha,4_0\n", make=rating_draft),
    "must be a number up": answers(RATED + "w,p002,alpha,1e12\n", make=rating_draft),
    "must be a number, not": answers(
        '{"annotator": "w", "prompt_key": "p002", "system": "alpha", "value": true}', make=rating_draft, name="a.jsonl"
    ),
    "must be empty: answers to “…” are about": answers(
        "annotator,prompt_key,system,value,part\nw,p002,alpha,3,1\n", make=rating_draft
    ),
    "is empty. Give": answers(RATED + "w,p002,alpha,\n", make=rating_draft),
    "must be empty: answers to “…” belong in the column ….": answers(
        "annotator,prompt_key,system,value,text\nw,p002,alpha,3,Good\n", make=rating_draft
    ),
    "is not a valid": answers(RATED + "w,p002,alpha,9\n", make=rating_draft),
    "no output was shown": answers("annotator,prompt_key,shown:A,shown:B,label\nw,p002,alpha,beta,C\n"),
    "_form_value: “…” is not among": lambda: _not_shown(),
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
