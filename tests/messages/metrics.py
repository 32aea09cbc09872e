"""The lines of metrics, judges and their check: an act refuses, a file has faults, or a form says what is wrong."""

from unittest import mock

from django.core.exceptions import ValidationError

from analysis.metrics import comparison, computed, files, store
from analysis.metrics.files import ScoresFileSettings, ScoresRefused
from analysis.metrics.judge_check.measuring import compute_result, draw_check, request_result
from analysis.metrics.judge_check.views import DrawForm
from analysis.metrics.pages.views import ScoresForm
from analysis.metrics.store import MetricDescription
from analysis.metrics.texts.built_in import TextMetric
from analysis.models import Metric
from studies.models import Arm, Batch, Section
from tests.analysis.metrics.judge_check.builders import JUDGE, chosen, judged_draft, store_judge
from tests.analysis.metrics.scores import rows_of, table
from tests.boards.builders import rating_template
from tests.messages.forms.scenarios import me, says_refused, upload
from tests.messages.lines import Shown
from tests.messages.pages.scenarios import draft

METRICS = "analysis/metrics"
METRIC = MetricDescription("metric", "v1")


def rated(**columns):
    return rating_template(me(), prompts=3, systems=("human", "good"), **columns)


def faults(change=lambda rows: None, described=METRIC, data=None, **settings):
    """What is wrong with a file of scores after its rows were changed."""

    def scenario():
        study = rated()
        rows = rows_of(study, strict=1)
        change(rows)
        try:
            store.upload_scores(study, me(), "s.csv", data or table(rows), ScoresFileSettings(**settings), described)
        except ScoresRefused as refused:
            return [Shown(str(problem)) for problem in refused.problems]
        except ValidationError as refused:
            return [Shown(text) for text in refused.messages]

    return scenario


def cell(name, value, row=0):
    return lambda rows: rows[row].update({name: value})


def too_large():
    with mock.patch.object(files, "MAX_FILE_BYTES", 10):
        return faults()()


def sent_twice():
    study = rated()
    for start in (1, 2):
        try:
            store.upload_scores(
                study,
                me(),
                "s.csv",
                table(rows_of(study, strict=start)),
                ScoresFileSettings(),
                METRIC,
            )
        except store.ActionRefused as refused:
            return [Shown(str(refused))]


def computing(*names, make=rated):
    return says_refused(lambda: computed.request_metrics(make(), me(), names))


def not_installed():
    with mock.patch.object(TextMetric, "is_installed", False):
        return computing("bleu")()


def drawing(change=lambda study, judge: None, described=JUDGE, **declared):
    """Why no sample can be drawn, after the draft or its judge was changed."""

    def scenario():
        study = judged_draft(me())
        judge = store_judge(study, described)
        settings = chosen(study, judge, **declared)
        change(study, judge)
        return says_refused(lambda: draw_check(study, me(), settings))()

    return scenario


def about_another_question(study, judge):
    judge.question = study.sections.get().questions.get(key="reason")


def with_ready_made_batches(study, judge):
    Batch.objects.create(study=study, arm=study.arms.get(), number=1, origin="imported", key="of a file")


def drawn_draft():
    study = judged_draft(me())
    judge = store_judge(study)
    draw_check(study, me(), chosen(study, judge))
    return study


def without_its_judge():
    study = drawn_draft()
    store.discard(Metric.objects.get(study=study), me())
    return study


def form_errors(make_form):
    def scenario():
        form = make_form()
        return [Shown(text) for errors in form.errors.values() for text in errors]

    return scenario


def draw_form():
    study = judged_draft(me())
    judge = store_judge(study)
    initial = {name: field.initial for name, field in DrawForm(study).fields.items() if field.initial is not None}
    return DrawForm(study, initial | {"judge": judge.pk, "question": "verdict", "min_agreement": ""})


LINES = {
    f"{METRICS}:request_comparison": [
        (
            "has no metric and no judge",
            "Upload scores or compute",
            says_refused(lambda: comparison.request_comparison(rated(), me())),
        ),
        (
            "No question of this study gives scores",
            "Compare metrics in a study with",
            says_refused(lambda: compared_without_questions()),
        ),
    ],
    f"{METRICS}:request_metrics": [("No metric is chosen", "Choose one or more", computing())],
    f"{METRICS}:refuse_unless_computable": [
        ("“none” is not a metric", "Choose one of: bleu", computing("none")),
        ("need optional packages", "Install them", not_installed),
        (
            "has no reference outputs",
            "Mark the system",
            computing("exact_match", make=lambda: rating_template(me(), systems=("good",))),
        ),
    ],
    f"{METRICS}:read": [("The file is larger than", "Send a smaller file", too_large)],
    f"{METRICS}:_read_row": [
        (
            "has no column with scores",
            "Add one, named like its metric",
            faults(lambda rows: [row.pop("strict") for row in rows]),
        ),
        (
            "already has scores for the same output",
            "Keep one of the two rows",
            faults(lambda rows: rows.append(dict(rows[0]))),
        ),
    ],
    f"{METRICS}:_check_version": [
        (
            "The version is “v2”, and in row 2 “v1”",
            "Upload one version at a time",
            faults(lambda rows: [row.update(version=f"v{1 + (n > 0)}") for n, row in enumerate(rows)]),
        ),
    ],
    f"{METRICS}:_unknown_question": [("“zzz” is not a question", "Use one of: “overall”", faults(question="zzz"))],
    f"{METRICS}:_key": [
        (
            "Both outputs of the pair are the same",
            "Name two systems",
            faults(data=b"first,second,prompt,j\ngood,good,p000,1\n"),
        )
    ],
    f"{METRICS}:_output": [
        ("The name of the system is empty", "Enter a system", faults(cell("system", ""))),
        ("“zzz” has no output for the prompt", "Correct the names", faults(cell("system", "zzz"))),
    ],
    f"{METRICS}:_number": [("“-1” is not a whole number from", "Correct it", faults(cell("run", "-1")))],
    f"{METRICS}:_value": [
        ("“good” is not a number", "Enter a number", faults(cell("strict", "good"))),
        ("“inf” is not a finite number", "Leave the cell empty", faults(cell("strict", "inf"))),
        (
            "9 is outside of the scale from 1 to 5",
            "correct the scale",
            faults(cell("strict", "9"), scale_low=1, scale_high=5),
        ),
    ],
    f"{METRICS}:_check_columns": [
        ("has no scores in this column", "Check the name", faults(columns=("zzz",))),
        (
            "The file has no scores",
            "Add a row for each output",
            faults(lambda rows: [row.update(strict="") for row in rows]),
        ),
    ],
    f"{METRICS}:_check_column": [
        (
            "All scores (rows 2 to 7) are 2",
            "Check the metric or judge",
            faults(lambda rows: [row.update(strict=2) for row in rows]),
        ),
        ("1 of 6 outputs have no score", "say that the file covers a part", faults(lambda rows: rows.pop())),
    ],
    f"{METRICS}:_store": [
        ("already has scores of version “v1”", "or discard the old ones", sent_twice),
        ("Enter both ends", "or neither", faults(described=MetricDescription("metric", "v1", scale_low=1.0))),
        (
            "The highest point must be above",
            "above the lowest point",
            faults(described=MetricDescription("metric", "v1", scale_low=5.0, scale_high=1.0)),
        ),
    ],
    f"{METRICS}:": [
        ("No file was chosen", "Choose the file", form_errors(lambda: ScoresForm(rated(), {}))),
        ("The file is empty", "Choose the file", form_errors(lambda: ScoresForm(rated(), {}, {"file": upload(b"")}))),
        ("The version is missing", "Enter the version", form_errors(lambda: ScoresForm(rated(), {}))),
    ],
    f"{METRICS}:draw_check": [("but the judge scored 40", "Draw fewer", drawing(n_test=41))],
    f"{METRICS}:_check_design": [
        (
            "Only one section may show outputs",
            "Delete the others",
            drawing(lambda study, judge: Section.objects.create(study=study, position=2, protocol="rating", m=1)),
        ),
        (
            "needs a study with one arm",
            "Delete the other arms",
            drawing(lambda study, judge: Arm.objects.create(study=study, name="two")),
        ),
        ("has ready-made batches", "Use a draft without them", drawing(with_ready_made_batches)),
        ("are about another question", "Choose that question", drawing(about_another_question)),
    ],
    f"{METRICS}:_threshold": [
        ("The judge has no scale", "Enter from which score", drawing(described=MetricDescription("judge", "v1"))),
        ("outside of the judge's scale", "Enter a score from 1 to 5", drawing(threshold=9)),
    ],
    f"{METRICS}:clean": [("Nothing says what is good enough", "Enter a minimum", form_errors(draw_form))],
    f"{METRICS}:request_result": [
        ("No sample is drawn yet", "Draw one", says_refused(lambda: request_result(judged_draft(me()), me()))),
        ("The study is a draft", "Launch it first", says_refused(lambda: request_result(drawn_draft(), me()))),
    ],
    f"{METRICS}:compute_result": [
        (
            "is not in use any more",
            "Upload the scores of a version",
            says_refused(lambda: compute_result(without_its_judge(), me())),
        )
    ],
}  # fmt: skip - one line for each message


def compared_without_questions():
    study = draft()
    store_judge(study)
    return comparison.request_comparison(study, me())
