"""The page and the badge of a check. They show what is stored and compute nothing."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST, require_safe

from analysis.data.blinding import are_outcomes_hidden
from analysis.models import JudgeCheck, Metric
from analysis.protocols.blocks import cells
from analysis.protocols.blocks.populations import groups_sentence, heading_words
from analysis.report.page_jobs import job_context, token_of_form
from annotators.counting import SIMULATED, Use, counted_origins, is_simulated, select
from studies.access import Action, get_study, is_allowed, may_read_draw
from studies.admin.study_page import render_new_study_page, render_study_page
from studies.models import Question, Study
from studies.services.lifecycle import ActionRefused
from studies.services.questions import find_guided_section

from .measuring import (
    FEWEST_OUTPUTS,
    KIND,
    CheckState,
    DrawSettings,
    draw_check,
    find_state,
    judges_of,
    newest_check,
    request_result,
    times_of_comparisons,
    verdict_questions,
    verdicts_by_output,
)

# The form that draws the sample of a check, for the page and for REST.


MAX_OUTPUTS, MAX_PEOPLE = 20_000, 100


def _minimum(label: str) -> forms.FloatField:
    return forms.FloatField(
        label=label, required=False, min_value=0, max_value=0.99, help_text="From 0 to 1. Empty: not declared."
    )


class QuestionField(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        return obj.text


class DrawForm(forms.Form):
    judge = forms.ModelChoiceField(Metric.objects.none(), help_text="The version whose scores decide what is drawn.")
    question = QuestionField(
        Question.objects.none(), to_field_name="key", help_text="The question that people answer with no or yes."
    )
    threshold = forms.FloatField(
        required=False,
        label="“yes” from this score on",
        help_text="On the judge's own scale; up to this score if lower is better. Empty: the middle of the scale.",
    )
    n_test = forms.IntegerField(
        min_value=FEWEST_OUTPUTS,
        max_value=MAX_OUTPUTS,
        initial=150,
        label="outputs that decide",
        help_text="The test part. Do not look at it while you change the judge.",
    )
    n_development = forms.IntegerField(
        min_value=0,
        max_value=MAX_OUTPUTS,
        initial=50,
        label="outputs for changing the judge",
        help_text="The development part: its differences between people and the judge are listed. 0: none.",
    )
    people_per_output = forms.IntegerField(
        min_value=1,
        max_value=MAX_PEOPLE,
        initial=3,
        help_text="The alternative annotator test needs at least 3 people, each with 30 outputs.",
    )
    certainty_ratio = forms.FloatField(
        min_value=1,
        max_value=20,
        initial=1,
        label="unsure outputs are drawn this many times as often",
        help_text="1: all outputs have the same probability. Above 1: more outputs near the threshold, or with runs that differ.",
    )
    min_agreement = _minimum("lowest agreement")
    min_true_positive_rate = _minimum("lowest true-positive rate")
    min_true_negative_rate = _minimum("lowest true-negative rate")
    needs_alternative_test = forms.BooleanField(
        required=False,
        label="must pass the alternative annotator test",
        help_text="Against at least half of the people.",
    )
    epsilon = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.1,
        label="how much better a person may be (epsilon)",
        help_text="For the alternative annotator test: .2 for experts, .15 for trained people, .1 for crowd workers.",
    )
    seed = forms.IntegerField(
        required=False, min_value=0, max_value=2**62, help_text="The same seed draws the same sample. Empty: a new one."
    )

    def __init__(self, study: Study, data=None):
        super().__init__(data)
        judge, question = self.fields["judge"], self.fields["question"]
        assert isinstance(judge, forms.ModelChoiceField) and isinstance(question, QuestionField)  # noqa: S101 - for the types
        judge.queryset = judges_of(study)
        keys = [one.pk for one in verdict_questions(study)]
        question.queryset = Question.objects.filter(pk__in=keys).select_related("section")
        for field in (judge, question):
            # One possible choice is chosen.
            if field.queryset is not None and field.queryset.count() == 1:
                field.empty_label = None

    def ask_about_answers(self, counts: Collection[int]) -> None:
        """Ask for a sample from answers. ``counts``: how many people judged each output."""
        judge, least = self.fields["judge"], self.fields["people_per_output"]
        judge.help_text = "The version that is compared with people. Its scores play no part in the draw."
        least.label, least.initial = "fewest verdicts of an output", min(3, sorted(counts)[-FEWEST_OUTPUTS])
        least.help_text = f"Outputs with fewer are not drawn. {least.help_text}"
        n_outputs = min(200, sum(count >= least.initial for count in counts))
        n_development = n_outputs // 4 if n_outputs > FEWEST_OUTPUTS * 2 else 0
        self.initial.update(n_development=n_development, n_test=n_outputs - n_development)
        self.fields["certainty_ratio"].widget = forms.HiddenInput()

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        minimums = [cleaned.get(name) for name in self.fields if name.startswith("min_")]
        if not self.errors and not cleaned.get("needs_alternative_test") and all(one is None for one in minimums):
            self.add_error("min_agreement", "Nothing says what is good enough. Enter a minimum, or choose the test.")
        return cleaned

    def settings(self) -> DrawSettings:
        return DrawSettings(**self.cleaned_data)


# What a check says, in sentences.


# What the alternative annotator test asks of a person (``judges.MIN_ITEMS``, which pages do not import).
OUTPUTS_PER_PERSON = 30
NAMES = {
    "agreement": "agreement with people",
    "true_positive_rate": "true-positive rate",
    "true_negative_rate": "true-negative rate",
    "alternative_annotator_test": "alternative annotator test",
}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def interval_text(estimate: Mapping[str, Any] | None) -> str:
    """Return a share with its interval, or why it is undefined."""
    if not estimate or estimate["estimate"] is None:
        return f"undefined: {estimate['reason']}" if estimate and estimate["reason"] else "undefined"
    interval = estimate["interval"]
    if not interval:
        return f"{percent(estimate['estimate'])} (no interval: {estimate['reason'] or 'too few people or outputs'})"
    return f"{percent(estimate['estimate'])} ({percent(interval['low'])} to {percent(interval['high'])})"


def headline(found: CheckState) -> str:
    if found.check is None:
        return "No sample is drawn, so nothing can be said about a judge."
    name = found.check.judge.name
    match found.state:
        case "good":
            return f"“{name}” is good enough: it reaches all that was declared."
        case "not_good":
            return f"“{name}” is not shown to be good enough."
        case "stale":
            return f"The result is stale: {found.reason}. Compute it again."
    return f"It is open whether “{name}” is good enough: {found.reason}."


def sample_sentence(found: CheckState) -> str:
    """Return which outputs the sample was drawn from, and when."""
    check = found.check
    if check is None:
        return ""
    n, drawn = check.n_test + check.n_development, f"on {check.at:%Y-%m-%d}{f' by {check.by}' if check.by else ''}"
    if not check.is_from_answers:
        return f"{n} of {check.n_outputs} outputs with a score were drawn {drawn}, before people answered."
    judge, least = (found.result.judge if found.result else check.judge), check.people_per_output
    was_before = all(at > check.at for at in times_of_comparisons(judge))
    n_earlier = check.study.judge_checks.filter(pk__lt=check.pk).count()
    return (
        f"{n} outputs were drawn {drawn} from the {check.n_outputs} that had {least} verdict{'s' if least > 1 else ''} of people or more, "
        f"{'before' if was_before else 'after'} heval had compared scores of version {judge.version} with answers. The draw read no score."
        + (f" {n_earlier} earlier sample{'s' if n_earlier > 1 else ''} had been drawn." if n_earlier else "")
    )


def criterion_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each declared minimum."""
    said = []
    for one in result["criteria"]:
        name = NAMES[one["name"]].capitalize()
        if one["is_met"] is None:
            said.append(f"{name}: undefined, because {one['reason'] or 'there are too few people or outputs'}.")
        elif one["name"] == "alternative_annotator_test":
            passed = "passed" if one["is_met"] else "not passed"
            said.append(f"{name}: {passed}. The judge wins against {percent(one['estimate'])} of the tested people.")
        else:
            place = "above" if one["is_met"] else "not above"
            minimum = 100 * one["minimum"]
            # The lower end never looks like the minimum if it is another value.
            digits = cells.digits_to_distinguish(
                [100 * one["low"]], cells.exact_digits(round(minimum, 9), 1), [minimum]
            )
            estimate, low, high, declared = (
                cells.format_percent(one[key], digits) for key in ("estimate", "low", "high", "minimum")
            )
            said.append(
                f"{name}: {estimate}, interval {low} to {high}. The lower end is {place} the declared {declared}."
            )
    return said


def context_sentences(check: JudgeCheck, result: Mapping[str, Any]) -> list[str]:
    """Return what a reader needs beside the verdict."""
    test = result["test"]
    if not test["agreement"]:
        return ["No person has judged an output of the test part yet."]
    agreement = test["agreement"]
    who = "robots" if result["is_simulated"] else "people"
    said = [
        f"{result['n_people']} {who} gave {test['n_labels']} verdicts about {result['n_outputs']} outputs of the test part.",
        f"People say “{agreement['constant']}” most often. A judge that always said so would agree in "
        f"{interval_text(agreement['constant_agreement'])}.",
        *groups_sentence(result),
    ]
    if result.get("n_groups") is not None and test["alternative"]["people"]:
        said.append("The alternative annotator test still takes each output as independent, so it is too eager here.")
    possible = test["possible"]
    if possible["pair_agreement"]["estimate"] is not None:
        said.append(
            f"Two people agree with one another in {interval_text(possible['pair_agreement'])}. No judge can agree with people in more than "
            f"about {interval_text(possible['best_possible'])}."
        )
    n_versions = check.results.values("fingerprint").distinct().count()
    if n_versions > 1:
        said.append(
            f"The test part has now been used for {n_versions} versions of the judge. The best of them by this part "
            "looks better than it is: choose by the development part."
        )
    if result["is_simulated"]:
        said.append("Robots gave the answers, so nothing is decided.")
    return said


def workload_sentence(check: JudgeCheck, per_batch: int, batches_per_annotator: int) -> str:
    """Return how many batches a person must judge to count in the alternative annotator test, or nothing if one is enough."""
    of_test = per_batch * check.n_test / (check.n_test + check.n_development)
    needed = math.ceil(OUTPUTS_PER_PERSON / of_test)
    if not check.needs_alternative_test or needed < 2:
        return ""
    said = (
        f"The alternative annotator test counts people with at least {OUTPUTS_PER_PERSON} outputs of the test part. A batch has about "
        f"{of_test:.0f}, so three people or more must judge {needed} batches each."
    )
    if needed > batches_per_annotator:
        allowed = f"{batches_per_annotator} batch{'' if batches_per_annotator == 1 else 'es'}"
        said += f" The study allows {allowed} per annotator: allow {needed}, or show more outputs in a batch."
    return said


def probe_sentences(probes: Mapping[str, Any], family: str) -> list[str]:
    said = []
    if one := probes["repeat"]:
        said.append(f"Repeated runs give the same verdict in {interval_text(one['identical'])} of pairs of runs.")
    if one := probes["order"]:
        said.append(f"The verdict about a pair changes with its order in {interval_text(one['flips'])} of pairs.")
    if (one := probes["length"]) and one["estimate"] is not None:
        said.append(
            f"With each doubling of an output's length, the judge's share of “yes” {_more(one['estimate'], 'rises', 'falls')} points "
            f"compared with people's{_points_interval(one)}."
            if _is_direction_shown(one)
            else "It remains open whether an output's length changes the judge's share of “yes” compared with people's: "
            f"{_signed(one['estimate'])} points with each doubling{_points_interval(one)}."
        )
    if (one := probes["family"]) and one["difference"]["estimate"] is not None:
        difference = one["difference"]
        said.append(
            f"The judge's share of “yes” minus people's {_more(difference['estimate'], 'is higher', 'is lower')} points for systems of the "
            f"family “{family}” than for the others{_points_interval(difference)}."
            if _is_direction_shown(difference)
            else f"It remains open whether the judge favours systems of the family “{family}”: its share of “yes” minus people's is "
            f"{_signed(difference['estimate'])} points above that for the others{_points_interval(difference)}."
        )
    return said or [
        "The data allow no probe: they need repeated runs, pairs in both orders, texts, or a system of the judge's family."
    ]


def _more(estimate: float, more: str, less: str) -> str:
    return f"{more if estimate >= 0 else less} by {100 * abs(estimate):.1f}"


def _is_direction_shown(estimate: Mapping[str, Any]) -> bool:
    """Return whether the whole interval of a difference is on one side of 0."""
    interval = estimate["interval"]
    return bool(interval) and not interval["low"] <= 0 <= interval["high"]


def _signed(difference: float, digits: int = 1) -> str:
    return f"{100 * difference:+.{digits}f}".replace("-", "−")


def _points_interval(estimate: Mapping[str, Any]) -> str:
    interval = estimate["interval"]
    if not interval:
        return " (no interval)"
    digits = cells.digits_to_distinguish([100 * interval["low"], 100 * interval["high"]], 1, [0.0])
    return f" (interval {_signed(interval['low'], digits)} to {_signed(interval['high'], digits)})"


BADGE_COLOURS = {"good": "#1a6b3c", "not_good": "#a3281e", "stale": "#8a5a00", "open": "#4a5560"}
BADGE_SECONDS = 300
# The picture of shares: from 0 to 100 % in its own units.
LEFT, WIDTH, ROW = 8, 284, 34


@login_required
@require_GET
def judge_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the state of the study's check, and the form that draws its sample."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    return _render(request, study, DrawForm(study))


def _render(request: HttpRequest, study: Study, form: DrawForm, status: int = 200) -> HttpResponse:
    check = newest_check(study)
    found = find_state(check)
    submitted = select(Use.RESULTS, study.assignments.all())
    may_draw = is_allowed(request.user, Action.EDIT if study.is_draft else Action.ANALYSE, study)
    why_not = "" if study.is_draft else _offer_answers(study, form)
    context: dict[str, Any] = {
        "study": study,
        "simulated": SIMULATED if is_simulated(study) else "",
        "form": form,
        "check": check,
        "found": found,
        "headline": headline(found),
        "has_judge": judges_of(study).exists(),
        "may_draw": may_draw and not why_not,
        "why_not": why_not,
        "sample": sample_sentence(found),
        "may_run": check is not None and bool(study.launched_at) and is_allowed(request.user, Action.ANALYSE, study),
        "is_hidden": study.is_blind,
        "may_read_draw": may_read_draw(request.user, study),
        "n_submitted": submitted.count() if study.launched_at else 0,
        "n_places": (study.target_n or 0) if check else 0,
        **job_context(request, study, KIND),
    }
    if check:
        if not found.result and not check.is_from_answers:
            context["workload"] = workload_sentence(check, check.question.section.m, study.batches_per_annotator)
        context["badge"] = settings.SITE_URL + reverse("judge_badge", args=[check.badge_key])
    if found.result:
        context |= _result_context(found, found.result.result)
    return render_judge_page(request, "judge/check.html", study, {"here": "Analyse"} | context, status)


def render_judge_page(
    request: HttpRequest, template: str, study: Study, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """Return a page about judges. If the pages of a new study made the question of a check, it is in their frame."""
    guided = find_guided_section(study) if study.is_draft else None
    if guided and any(question.section_id == guided.pk for question in verdict_questions(study)):
        return render_new_study_page(request, template, study, "Question", context, status)
    return render_study_page(request, template, study, context, status)


def _offer_answers(study: Study, form: DrawForm) -> str:
    """Let the form ask for a sample from the study's answers. Return why there can be none, or ''."""
    if are_outcomes_hidden(study, counted_origins(study)):
        return "The study is still collecting. A sample can be drawn from its answers when outcomes are shown."
    questions = verdict_questions(study)
    counts = max((list(verdicts_by_output(one).values()) for one in questions), key=len, default=[])
    if not questions:
        return "A sample from answers needs a question with two answers about one output a page. This study has none."
    if len(counts) < FEWEST_OUTPUTS:
        n = len(counts)
        return f"People gave a verdict about {n} output{'' if n == 1 else 's'}. A sample from answers needs {FEWEST_OUTPUTS}."
    judges = list(judges_of(study))
    if judges and all(times_of_comparisons(judge) for judge in judges):
        return (
            "heval has compared the scores of each judge with these answers already, and a sample must be drawn before. Upload "
            "scores of a new version of the judge, and draw before you compare."
        )
    form.ask_about_answers(counts)
    return ""


def _result_context(found: CheckState, result: Mapping[str, Any]) -> dict[str, Any]:
    test = result["test"]
    shown: dict[str, Any] = {
        "result": result,
        "criteria": criterion_sentences(result),
        "said": context_sentences(found.result.judge_check, result) if found.result else (),
    }
    if not test["agreement"]:
        return shown
    agreement, rates, possible = test["agreement"], test["rates"], test["possible"]
    rows = [
        ("Agreement with a person", agreement["agreement"]),
        (f"Always “{agreement['constant']}”", agreement["constant_agreement"]),
        ("True-positive rate", rates["true_positive_rate"]),
        ("True-negative rate", rates["true_negative_rate"]),
        ("Precision of “yes”", rates["precision"]),
        ("Precision of “no”", rates["negative_precision"]),
        ("People say “yes”", rates["prevalence"]),
        ("The judge says “yes”", rates["judge_prevalence"]),
        ("Person with person", possible["pair_agreement"]),
        ("Best possible judge", possible["best_possible"]),
    ]
    shown["rows"] = [_row(label, estimate) for label, estimate in rows]
    shown["picture"] = [_mark(number, label, estimate) for number, (label, estimate) in enumerate(rows)]
    shown["picture_height"] = ROW * len(rows) + 24
    shown["picture_bottom"] = ROW * len(rows) + 2
    shown["groups"] = [
        (
            name,
            [_row(one["group"] or "–", one["agreement"]) for one in group["groups"]],
            cells.format_equation("p", cells.format_pvalue(group["joint"]["test"]["pvalue"]))
            if group["joint"]["test"]
            else "",
        )
        for name, group in test["groups"].items()
    ]
    shown["people"] = test["alternative"]["people"]
    shown["kappa"] = agreement["kappa"]
    intervals = [one for _, one in rows if one["interval"]]
    shown["holds_for"] = heading_words(one["settings"].get("population", "") for one in intervals)
    shown["probes"] = probe_sentences(test["probes"], found.result.judge.family if found.result else "")
    development = result["development"]
    if development["agreement"]:
        shown["development"] = _row("Agreement with a person", development["agreement"]["agreement"])
        shown["differences"] = development["differences"]
    return shown


def _row(label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "label": label,
        "text": interval_text(estimate),
        "n_rows": estimate["n_rows"],
        "n": estimate["n"],
        "unit": estimate["unit"],
    }


def _mark(number: int, label: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the picture: the places of the estimate and of its interval."""

    def across(share: float) -> float:
        return round(LEFT + WIDTH * min(1.0, max(0.0, share)), 1)

    interval, value = estimate["interval"], estimate["estimate"]
    return {
        "label": label,
        "text_y": number * ROW + 12,
        "y": number * ROW + 22,
        "x": None if value is None else across(value),
        "low": across(interval["low"]) if interval else None,
        "high": across(interval["high"]) if interval else None,
    }


@login_required
@require_POST
def draw_sample(request: HttpRequest, pk: int) -> HttpResponse:
    """Draw the sample of a draft, or of the answers to a launched study."""
    study = get_study(request.user, Action.EDIT, pk=pk)
    form = DrawForm(study, request.POST)
    if form.is_valid():
        try:
            draw_check(study, request.user, form.settings())
        except (ActionRefused, PermissionDenied) as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("judge_check", pk=study.pk)
    return _render(request, study, form, status=400)


@login_required
@require_POST
def compute(request: HttpRequest, pk: int) -> HttpResponse:
    """Start the job that computes the result. A form that is sent twice starts one job."""
    study = get_study(request.user, Action.ANALYSE, pk=pk)
    try:
        request_result(study, request.user, token_of_form(study, "judge", request.POST))
    except (ActionRefused, PermissionDenied) as refused:
        messages.error(request, str(refused))
    return redirect("judge_check", pk=study.pk)


@require_safe
def badge(request: HttpRequest, key: str) -> HttpResponse:
    """Show the state of a check to everybody with the key: nothing but the judge's name, the state, its date and n."""
    check = JudgeCheck.objects.filter(badge_key=key).select_related("judge__study", "question__section__study").first()
    if check is None:
        raise Http404("There is no badge at this address.")
    found = find_state(check)
    value = found.words
    if found.result and found.at:
        value += f", {found.at:%Y-%m-%d}, n = {found.result.n_labels}"
    name = check.judge.name
    label = f"judge {name if len(name) <= 40 else name[:39] + '…'}"
    # About the width of the letters of a sans-serif font at 11 pixels.
    label_width, value_width = (round(12 + 6.6 * len(text), 1) for text in (label, value))
    context = {
        "label": label,
        "value": value,
        "text": f"{label}: {value}",
        "colour": BADGE_COLOURS[found.state],
        "width": round(label_width + value_width, 1),
        "label_width": label_width,
        "label_middle": round(label_width / 2, 1),
        "value_middle": round(label_width + value_width / 2, 1),
    }
    response = render(request, "judge/badge.svg", context, content_type="image/svg+xml")
    response["Cache-Control"] = f"public, max-age={BADGE_SECONDS}"
    response["X-Robots-Tag"] = "noindex"
    return response
