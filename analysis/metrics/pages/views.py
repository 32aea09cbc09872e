"""The page of a study's metrics and judges. It shows stored results, computes nothing and never imports numpy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_GET, require_POST

from analysis.data.blinding import are_outcomes_hidden
from analysis.metrics import comparison, computed
from analysis.metrics.files import MAX_FILE_BYTES, ScoresFileSettings, ScoresRefused, question_names
from analysis.metrics.judge_check.measuring import can_be_checked
from analysis.metrics.judge_check.views import render_judge_page
from analysis.metrics.scoring import describe_scores
from analysis.metrics.store import MetricDescription, discard, metrics_in_use, upload_scores
from analysis.models import Metric, MetricsComparison
from analysis.report.page_jobs import job_context, token_of_form
from annotators.counting import SIMULATED, counted_origins, is_simulated
from studies.access import Action, get_study, is_allowed
from studies.admin.forms import CleanTextMixin
from studies.figures import Axis, Frame, at, shortened
from studies.models import Job, Output, Study
from studies.services.lifecycle import ActionRefused
from studies.stimuli.rows import formula_safe_csv_text

# The figure of people beside a metric, as places for a template that draws SVG.


WIDTH, HEIGHT = 560, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 440, 16, 320
# Names of more systems would cover one another; the table has them.
MAX_NAMED = 25
LONGEST_NAME = 18


def scatter_figure(systems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figure of the systems' mean scores: the metric's across, the people's upwards. Empty without two systems."""
    if len(systems) < 2:
        return {}
    across = Axis([one["metric"] for one in systems], LEFT, RIGHT)
    upwards = Axis([one["people"] for one in systems], BOTTOM, TOP)
    dots = [
        {
            "text": f"{one['system']}: metric {one['metric']:.3f}, people {one['people']:.3f}",
            "name": shortened(one["system"], LONGEST_NAME) if len(systems) <= MAX_NAMED else "",
            "x": at(across.place(one["metric"])),
            "y": at(upwards.place(one["people"])),
            "name_x": at(across.place(one["metric"]) + 8),
            "name_y": at(upwards.place(one["people"]) + 4),
        }
        for one in systems
    ]
    return {
        "frame": Frame(
            WIDTH,
            HEIGHT,
            LEFT,
            RIGHT,
            TOP,
            BOTTOM,
            across.ticks,
            upwards.ticks,
            "Mean of the metric, higher is better",
            "Mean of people",
            has_columns=True,
        ),
        "dots": dots,
    }


# The form that uploads scores of metrics and judges.


class ScoresForm(CleanTextMixin, forms.Form):
    """A file of scores and what a person says about the metric or judge that made them."""

    file = forms.FileField(
        label="File",
        help_text="A table (CSV, JSON or a workbook). Columns “system” and “prompt”, and a column for each metric or judge, named like it. Verdicts on pairs have “first” and “second” in the place of “system”.",
        error_messages={
            "required": "No file was chosen. Choose the file with the scores.",
            "empty": "The file is empty. Choose the file with the scores.",
        },
    )
    kind = forms.ChoiceField(label="Kind", choices=Metric.Kind.choices, initial=Metric.Kind.METRIC)
    version = forms.CharField(
        label="Version",
        max_length=200,
        help_text="The version of the metric's program, or the full name of the judge's model.",
        error_messages={"required": "The version is missing. Enter the version of the program or model."},
    )
    question = forms.ChoiceField(
        label="Question",
        required=False,
        help_text="The question that the scores are about, if the file has no column “question”.",
    )
    prompt = forms.CharField(
        label="Prompt of the judge, or settings of the metric",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Another prompt or setting is another version.",
    )
    family = forms.CharField(
        label="Maker of the judge's model",
        required=False,
        max_length=100,
        help_text="Used to warn where a judged system has the same maker.",
    )
    is_lower_better = forms.BooleanField(label="Lower is better", required=False)
    scale_low = forms.FloatField(
        label="Lowest point of the scale", required=False, help_text="Of a judge who answers on a scale."
    )
    scale_high = forms.FloatField(label="Highest point of the scale", required=False)
    is_partial = forms.BooleanField(
        label="The file covers a part of the outputs",
        required=False,
        help_text="Otherwise a file that leaves out outputs is refused.",
    )

    def __init__(self, study: Study, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        names = [(name, name) for name in question_names(study)]
        self.fields["question"].choices = [("", "the output as a whole"), *names]  # type: ignore[attr-defined]  # a choice field

    @property
    def file_settings(self) -> ScoresFileSettings:
        names = ("question", "scale_low", "scale_high", "is_partial")
        return ScoresFileSettings(**{name: self.cleaned_data[name] for name in names})

    @property
    def description(self) -> MetricDescription:
        cleaned = self.cleaned_data
        return MetricDescription(
            cleaned["kind"],
            cleaned["version"],
            {"prompt": cleaned["prompt"]} if cleaned["prompt"] else {},
            cleaned["family"],
            cleaned["is_lower_better"],
            cleaned["scale_low"],
            cleaned["scale_high"],
        )


# The table that compares each two metrics, as pages of studies and boards show it.


UNDEFINED = "–"


def pair_rows(comparisons: Iterable[Mapping[str, Any]], measures: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the stored comparisons with the name of the measure and with their numbers as text."""
    return [
        {
            **row,
            "label": measures[row["statistic"]],
            "p": p_value_text(row["pvalue_adjusted"]),
            "difference": UNDEFINED if row["estimate"] is None else number_text(row["estimate"]),
        }
        for row in comparisons
    ]


def number_text(value: float) -> str:
    # A value that rounds to 0 has no sign.
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def p_value_text(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


MEASURES = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "pairwise_accuracy": "Pairwise accuracy",
    "soft_pairwise_accuracy": "Soft pairwise accuracy",
    "segment_tau": "Kendall within prompts",
    "tie_calibrated_accuracy": "Accuracy with ties",
}


@login_required
@require_GET
def metrics_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the metrics and judges of a study, the forms that add some, and how they agree with people."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    return _render_page(request, study, ScoresForm(study))


def _render_page(
    request: HttpRequest,
    study: Study,
    form: ScoresForm,
    *,
    problems: Sequence[str] = (),
    n_problems: int = 0,
    status: int = 200,
) -> HttpResponse:
    is_hidden = are_outcomes_hidden(study, counted_origins(study))
    comparisons = [] if is_hidden else comparison.latest_comparisons(study)
    metrics = list(metrics_in_use(study).select_related("by"))
    kinds = (computed.KIND, comparison.KIND)
    latest = Job.objects.filter(study=study, kind__in=kinds).only("state", "error").order_by("-pk").first()
    chosen = request.GET.get("metric", "")
    chosen_metric = next((one.pk for one in metrics if str(one.pk) == chosen), metrics[0].pk if metrics else None)
    context = {
        "can_check_judge": can_be_checked(study),
        "study": study,
        "simulated": SIMULATED if is_simulated(study) else "",
        "metrics": metrics,
        "discarded": Metric.objects.filter(study=study).exclude(discarded_at=None).count(),
        "form": form,
        "problems": problems,
        "n_more": max(0, n_problems - len(problems)),
        "available": list(computed.available_metrics().values()),
        "not_installed": computed.NOT_INSTALLED,
        "slow_forecast": computed.slow_forecast(study),
        "is_hidden": is_hidden,
        "comparisons": [_comparison_context(one, chosen_metric) for one in comparisons],
        "is_stale": comparison.is_stale(study, comparisons),
        "measures": MEASURES,
        "may_change": is_allowed(request.user, Action.ANALYSE, study),
        "failed": latest if latest and latest.state == Job.State.FAILED else None,
        **job_context(request, study, *kinds),
    }
    return render_judge_page(request, "report/metrics.html", study, context, status)


def _comparison_context(one: MetricsComparison, chosen: int | None) -> dict[str, Any]:
    result = one.result
    rows = [
        row | {"cells": [_cell(row["measures"][name]) for name in MEASURES], "is_chosen": row["metric"] == chosen}
        for row in result["metrics"]
    ]
    reasons = {
        f"{row['name']} {row['version']}: {row['measures'][name]['reason']}"
        for row in result["metrics"]
        for name in MEASURES
        if row["measures"][name]["reason"]
    }
    drawn = next((row for row in rows if row["is_chosen"]), None)
    return {
        "row": one,
        "meaning": describe_scores(one.question),
        "result": result,
        "metrics": rows,
        "reasons": sorted(reasons),
        "table": _system_rows(result),
        "drawn": drawn,
        "figure": scatter_figure(drawn["systems"]) if drawn else {},
        "pairs": pair_rows(result["comparisons"], MEASURES),
    }


def _system_rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the systems with people's and metrics' scores; the best of each column is bold. Results of before 2026-11-27 have none."""
    systems = result.get("systems", [])
    columns = [{one["metric"]: one["mean"] for one in row["metrics"]} for row in systems]
    lower = {row["metric"] for row in result["metrics"] if row.get("is_lower_better")}
    best = {}
    for metric in {name for column in columns for name in column}:
        values = [column[metric] for column in columns if metric in column]
        if min(values) < max(values):
            best[metric] = min(values) if metric in lower else max(values)
    top = max((row["people"]["estimate"] for row in systems), default=None)
    return [
        {
            "system": row["system"],
            "people": _cell(row["people"] | {"n": None}) | {"is_best": row["people"]["estimate"] == top},
            "cells": [
                {"text": UNDEFINED}
                if one["metric"] not in column
                else {
                    "text": number_text(column[one["metric"]]),
                    "is_best": column[one["metric"]] == best.get(one["metric"]),
                }
                for one in result["metrics"]
            ],
        }
        for row, column in zip(systems, columns, strict=True)
    ]


def _cell(measure: dict[str, Any]) -> dict[str, Any]:
    if measure["estimate"] is None:
        return {"text": UNDEFINED, "range": "", "n": measure["n"]}
    spread = "" if measure["low"] is None else f"{number_text(measure['low'])} to {number_text(measure['high'])}"
    return {"text": number_text(measure["estimate"]), "range": spread, "n": measure["n"]}


@login_required
@require_POST
def upload_metric_scores(request: HttpRequest, pk: int) -> HttpResponse:
    """Store a file of scores, or show every problem of the file and of the form."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    form = ScoresForm(study, request.POST, request.FILES)
    if not form.is_valid():
        return _render_page(request, study, form, status=400)
    file = form.cleaned_data["file"]
    try:
        upload_scores(
            study, request.user, file.name, file.read(MAX_FILE_BYTES + 1), form.file_settings, form.description
        )
    except ScoresRefused as refused:
        texts = [str(problem) for problem in refused.problems.first]
        return _render_page(request, study, form, problems=texts, n_problems=refused.problems.count, status=400)
    except ValidationError as refused:
        for name, texts in refused.message_dict.items():
            form.add_error(name if name in form.fields else None, texts)
        return _render_page(request, study, form, status=400)
    except ActionRefused as refused:
        return _render_page(request, study, form, problems=[str(refused)], n_problems=1, status=409)
    return redirect("study_metrics", pk=study.pk)


@login_required
@require_POST
def start_metrics(request: HttpRequest, pk: int) -> HttpResponse:
    """Start the job that computes metrics. A form that is sent twice starts one job."""
    names = request.POST.getlist("names")
    return _start(
        request, pk, computed.KIND, lambda study, token: computed.request_metrics(study, request.user, names, token)
    )


@login_required
@require_POST
def start_comparison(request: HttpRequest, pk: int) -> HttpResponse:
    """Start the job that compares metrics with people. A form that is sent twice starts one job."""
    return _start(
        request, pk, comparison.KIND, lambda study, token: comparison.request_comparison(study, request.user, token)
    )


def _start(request: HttpRequest, pk: int, kind: str, request_job: Callable[[Study, str | None], Job]) -> HttpResponse:
    """Request a job of the study, or show why it is refused."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    try:
        request_job(study, token_of_form(study, kind, request.POST))
    except ActionRefused as refused:
        return _render_page(request, study, ScoresForm(study), problems=[str(refused)], n_problems=1, status=409)
    return redirect("study_metrics", pk=study.pk)


@login_required
@require_POST
def discard_metric(request: HttpRequest, pk: int, metric: int) -> HttpResponse:
    """Leave a metric out of all pages from now on. Its scores are kept."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    discard(get_object_or_404(Metric, study=study, pk=metric), request.user)
    return redirect("study_metrics", pk=study.pk)


@login_required
@require_GET
def scores_template(request: HttpRequest, pk: int) -> HttpResponse:
    """A CSV file with a row for each output and an empty column for scores."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    outputs = Output.objects.filter(system__study=study).order_by("system__name", "prompt__key", "sample")
    rows = outputs.values_list("system__name", "prompt__key", "sample")
    lines = (("system", "prompt", "sample", "my_metric"), *((*row, "") for row in rows.iterator(chunk_size=5000)))
    response = HttpResponse(formula_safe_csv_text(lines), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="scores-{str(study.code)[:8]}.csv"'
    return response
