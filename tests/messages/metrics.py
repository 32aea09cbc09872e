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
from tests.analysis.metrics.judge_check.builders import JUDGE, answered_study, chosen, judged_draft, store_judge
from tests.analysis.metrics.scores import rows_of, table
from tests.boards.builders import rating_template
from tests.messages.forms.scenarios import me, says_refused, upload
from tests.messages.lines import Shown
from tests.messages.pages.scenarios import draft

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


def drawing_from_answers(change=lambda study: None, **declared):
    """Why no sample can be drawn from answers."""

    def scenario():
        study, judge = answered_study(me())
        change(study)
        return says_refused(lambda: draw_check(study, me(), chosen(study, judge, **declared)))()

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


METRICS = {
    "The study has no metric": says_refused(lambda: comparison.request_comparison(rated(), me())),
    "No question of this study": says_refused(lambda: compared_without_questions()),
    "No metric is chosen": computing(),
    "is not a metric": computing("none"),
    "Automatic metrics need": not_installed,
    "The study has no reference": computing("exact_match", make=lambda: rating_template(me(), systems=("good",))),
    "The file is larger": too_large,
    "The row has no column": faults(lambda rows: [row.pop("strict") for row in rows]),
    "Row … already": faults(lambda rows: rows.append(dict(rows[0]))),
    "The version is “…”, and in row": faults(
        lambda rows: [row.update(version=f"v{1 + (n > 0)}") for n, row in enumerate(rows)]
    ),
    "is not a question": faults(question="zzz"),
    "Both outputs of the pair": faults(data=b"first,second,prompt,j\ngood,good,p000,1\n"),
    "The name of the system": faults(cell("system", "")),
    "has no output": faults(cell("system", "zzz")),
    "is too large": faults(cell("strict", "1e99")),
    "is outside of the scale": faults(cell("strict", "9"), scale_low=1, scale_high=5),
    "The file has no scores in this column": faults(columns=("zzz",)),
    "The file has no scores. Add": faults(lambda rows: [row.update(strict="") for row in rows]),
    "All scores… (rows": faults(lambda rows: [row.update(strict=2) for row in rows]),
    "of … outputs": faults(lambda rows: rows.pop()),
    "already has scores of version": sent_twice,
    "Enter both ends": faults(described=MetricDescription("metric", "v1", scale_low=1.0)),
    "The highest point": faults(described=MetricDescription("metric", "v1", scale_low=5.0, scale_high=1.0)),
    "No file was chosen": form_errors(lambda: ScoresForm(rated(), {})),
    "The file is empty": form_errors(lambda: ScoresForm(rated(), {}, {"file": upload(b"")})),
    "The version is missing": form_errors(lambda: ScoresForm(rated(), {})),
    "The sample has … outputs, but the judge": drawing(n_test=41),
    "have at least … verdicts": drawing_from_answers(n_test=41),
    "A sample from answers reads no score": drawing_from_answers(certainty_ratio=2),
    "were compared with answers on": drawing_from_answers(lambda study: comparison.compare_with_people(study, me())),
    "Only one section": drawing(
        lambda study, judge: Section.objects.create(study=study, position=2, protocol="rating", m=1)
    ),
    "The check needs": drawing(lambda study, judge: Arm.objects.create(study=study, name="two")),
    "The study has ready-made": drawing(with_ready_made_batches),
    "The judge's scores": drawing(about_another_question),
    "The judge has no scale": drawing(described=MetricDescription("judge", "v1")),
    "The threshold is outside": drawing(threshold=9),
    "Nothing says what": form_errors(draw_form),
    "No sample is drawn": says_refused(lambda: request_result(judged_draft(me()), me())),
    "The study is a draft": says_refused(lambda: request_result(drawn_draft(), me())),
    "The judge is not in use": says_refused(lambda: compute_result(without_its_judge(), me())),
}


def compared_without_questions():
    study = draft()
    store_judge(study)
    return comparison.request_comparison(study, me())
