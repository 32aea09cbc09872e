"""The page of combined numbers. It shows stored results, computes nothing and never imports numpy."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from analysis.data.blinding import are_outcomes_hidden
from analysis.metrics.beside_people import SHORT
from analysis.metrics.calibrated.run import KIND, LatestResult, latest_results, request_calibration
from analysis.metrics.judge_check.measuring import can_be_checked
from analysis.protocols.blocks import cells
from analysis.protocols.blocks.populations import groups_sentence
from analysis.report.page_jobs import job_context, token_of_form
from annotators.counting import SIMULATED, counted_origins, is_simulated
from studies.access import Action, check_permission_or_404, get_study, is_allowed
from studies.admin.study_page import render_study_page
from studies.figures import Axis, CountsAxis, Frame, at, path_of
from studies.models import Job, Study
from studies.services.lifecycle import ActionRefused

from ..scoring import describe_scores
from ..store import metrics_in_use
from .options import CHOSEN, UNKNOWN, CalibrationForm

# The figure of a plan: width of the interval against the number of human answers, with and without judges.


WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 470, 16, 288


def plan_figure(curve: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figure of a stored curve: points of (width, answers of people alone, answers with judges).

    Answers are on a logarithmic scale, and the narrowest interval is on the right. Empty without two points.
    """
    rows = sorted(curve.get("points", ()), key=lambda row: -row[0])
    if len(rows) < 2:
        return {}
    across = Axis([100 * row[0] for row in rows], RIGHT, LEFT)
    upwards = CountsAxis([count for row in rows for count in row[1:]], BOTTOM, TOP)
    people, judges = ([(across.place(100 * row[0]), upwards.place(row[column])) for row in rows] for column in (1, 2))
    people_y, judges_y = people[-1][1], judges[-1][1]
    # The names of the two lines stay apart.
    if abs(people_y - judges_y) < 16:
        judges_y = people_y + 16
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
            "Width of the interval, in points of 100",
        ),
        "people": path_of(people),
        "judges": path_of(judges),
        "names_start": at(people[-1][0]),
        "people_y": at(people_y),
        "judges_y": at(judges_y),
    }


# What a result says in words. Values of a result are from 0 to 1, and pages show them as points of 100.


UNKNOWN_SAMPLE = "Nobody said how the labelled outputs were selected. The combined numbers hold only if they are a random part of all outputs."
CHOSEN_SAMPLE = (
    "People judged a chosen part of the outputs. This rules out combined numbers: how far a judge is wrong there says nothing about the other outputs. "
    "The numbers of people are about the chosen part only."
)
UNKNOWN_PEOPLE = "The answers do not say who gave them. This rules out statements about other people: the intervals are about other prompts like these, judged by exactly these people."

STRATA = "The combined numbers give each domain of prompts its share of all outputs, if enough prompts of the domain have answers."

# More sentences than these hide the largest differences.
MAX_BIASES = 8


def points(value: float | None, digits: int = 1) -> str:
    """Return a value from 0 to 1 as points of 100."""
    return "–" if value is None else f"{100 * value:.{digits}f}".replace("-", "−")


def whole(value: float | None) -> str:
    """Return a number of answers without decimals."""
    return "–" if value is None else f"{round(value):,}".replace("-", "−")


def span(interval: Mapping[str, Any] | None, null: float | None = None) -> str:
    """Return the ends of an interval. None of them looks like the ``null`` if it is another value."""
    ends = [100 * interval[name] for name in ("low", "high")] if interval else []
    digits = cells.digits_to_distinguish(ends, 1, () if null is None else (100 * null,))
    return "–" if not interval else f"{points(interval['low'], digits)} to {points(interval['high'], digits)}"


def main_sentences(result: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know first: people's labels, what judges add, and what the sample rules out."""
    if result["status"] != "ok":
        return [f"There is no combined number. {result['reason']}"]
    # Results of before 2026-11-28 do not say whether robots gave the answers; their page says it.
    who = "robots" if result.get("is_simulated") else "people"
    people = f" of {result['n_people']:,} {who}" if result["n_people"] is not None else ""
    found = [
        f"{result['n_labels']:,} answers{people} are about {result['n_labelled']:,} of {result['n_items']:,} {_items(result)}. "
        f"{_named(result['used'])} scored all of them."
    ]
    found += groups_sentence(result)
    if result["is_ruled_out"]:
        found.append(CHOSEN_SAMPLE)
    elif options["sample"] == CHOSEN:
        found.append("People judged all outputs, so no part was chosen.")
    else:
        found.append(_saving(result))
        # Results of before 2026-11-27 have no number of domains.
        if result.get("n_domains", 1) > 1 and not result["are_all_labelled"]:
            found.append(STRATA)
        if options["sample"] == UNKNOWN and not result["are_all_labelled"]:
            found.append(UNKNOWN_SAMPLE)
    if not options["are_people_known"]:
        found.append(UNKNOWN_PEOPLE)
    return found


def _items(result: Mapping[str, Any]) -> str:
    return "pairs of outputs" if result["kind"] == "preferences" else "outputs"


def _named(names: list[str]) -> str:
    return f"{len(names)} judges" if len(names) > 3 else _quoted(names)


def _quoted(names: list[str]) -> str:
    quoted = [f"“{name}”" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]]) if len(quoted) > 1 else quoted[0]


def _saving(result: Mapping[str, Any]) -> str:
    if result["are_all_labelled"]:
        return "People judged every output, so judges add nothing to these numbers. The plan below says what they add to a larger set of outputs."
    rows = result["systems"] or result["pairs"]
    saving = [row["result"] for row in rows if (row["result"]["labels_saved"] or 0) > 0]
    if not saving:
        return "Judges save no answers. Report the numbers of people."
    money = [one["money_saved"] for one in saving if one["money_saved"]]
    cost = f", or {sum(money):,.2f} in rewards and fees" if money else ""
    return (
        f"Judges save answers for {len(saving)} of {len(rows)} {'systems' if result['systems'] else 'pairs'}. "
        f"For these, people alone would need {sum(one['labels_saved'] for one in saving):,.0f} more answers{cost}."
    )


def verdict(verdicts: Mapping[str, int]) -> str:
    """Return in words whether a judge saves labels. ``verdicts``: the number of systems, or pairs, with each verdict."""
    n = sum(verdicts.values())
    useful, useless, nothing = (verdicts.get(name, 0) for name in ("useful", "useless", "none"))
    if not n or nothing == n:
        return "The answers are too few to say whether it helps."
    if useless == n:
        return "Useless here: it saves less than a tenth of the answers, for every system. Ask people only."
    if useful == n:
        return "Useful: it saves at least a tenth of the answers, for every system."
    if useful:
        return (
            f"Useful for {useful} of {n}. For the others it is useless, or more answers or outputs are needed to say."
        )
    return f"Unclear: it may save a tenth of the answers. Collect more answers, or let it score more outputs (useless for {useless} of {n})."


def judge_sentences(judges: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in words for each judge, or for all that have the same verdict, whether it saves labels."""
    names: dict[str, list[str]] = {}
    for row in judges:
        names.setdefault(verdict(row["verdicts"]), []).append(row["name"])
    return [f"{_quoted(some)}: {said[0].lower()}{said[1:]}" for said, some in names.items()]


def plan_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return the plan of the system in the middle in words."""
    plan = result["plan"]
    if not plan["curve"]:
        return ["There is no plan. Each system needs answers about at least ten prompts, from two or more people."]
    group = next(one for one in plan["groups"] if one["group"] == plan["curve"]["group"])
    found = [
        f"The plan assumes that judges score {plan['n_items']:,} outputs of each system. {verdict(plan['verdicts'])}"
    ]
    found.extend(
        f"For an interval of {points(need['width'])} points about “{group['group']}”, people alone need {need['people_alone']:,} answers. "
        f"With the judges they need {need['with_judge']:,} (between {need['with_judge_low']:,} and {need['with_judge_high']:,})."
        for need in group["needs"]
    )
    return found


def all_biases(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the biases by system, domain and length. Results of before 2026-11-27 have none by length."""
    return [*result["bias_by_system"], *result["bias_by_domain"], *result.get("bias_by_length", ())]


def bias_sentences(result: Mapping[str, Any]) -> list[str]:
    """Return which judges favour which groups, where the joint intervals exclude 0; own families first."""
    found = []
    for row in result["bias_by_system"]:
        if row["is_own_family"]:
            found.append(
                f"“{row['judge']}” belongs to the family of “{row['group']}”. Its bias there, compared with the other systems: "
                f"{points(row['favour']['estimate'])} points ({_span_in_words(row['favour'])}). Do not rank this system by it."
            )
    clear = [
        row
        for row in all_biases(result)
        # What a judge gives to long texts it takes from short ones, so one sentence is enough.
        if not row["is_own_family"] and row["group"] != SHORT and _excludes_zero(row["favour"]["interval_adjusted"])
    ]
    clear.sort(key=lambda row: -abs(row["favour"]["estimate"]))
    for row in clear[:MAX_BIASES]:
        verb = "favours" if row["favour"]["estimate"] > 0 else "disfavours"
        found.append(
            f"“{row['judge']}” {verb} “{row['group'] or 'no domain'}” by {points(abs(row['favour']['estimate']))} points, compared with people."
        )
    if len(clear) > MAX_BIASES:
        found.append(f"The table has {len(clear) - MAX_BIASES} more such differences.")
    return found


def _excludes_zero(interval: Mapping[str, Any] | None) -> bool:
    return interval is not None and not interval["low"] <= 0 <= interval["high"]


def _span_in_words(estimate: Mapping[str, Any]) -> str:
    return span(estimate["interval"], 0.0) if estimate["interval"] else "no interval"


INITIAL = {"sample": "random", "are_people_known": True}


@login_required
@require_http_methods(["GET", "POST"])
def calibrated_page(request: HttpRequest, pk) -> HttpResponse:
    """Show the newest result of each question, people first, and the form of the plan. POST starts the job."""
    study = get_study(request.user, Action.VIEW, pk=pk)
    form, status = CalibrationForm(study, initial=_initial(study)), 200
    if request.method == "POST":
        check_permission_or_404(request.user, Action.ANALYSE, study)
        form = CalibrationForm(study, request.POST)
        if form.is_valid():
            token = token_of_form(study, "calibrate", request.POST)
            try:
                request_calibration(study, request.user, form.options(), token)
            except ActionRefused as refused:
                form.add_error(None, str(refused))
            else:
                return redirect("study_calibrated", study.pk)
        status = 400
    is_hidden = are_outcomes_hidden(study, counted_origins(study))
    failed = Job.objects.filter(study=study, kind=KIND).only("state", "error").order_by("-pk").first()
    context = {
        "study": study,
        "simulated": SIMULATED if is_simulated(study) else "",
        "is_hidden": is_hidden,
        "questions": [] if is_hidden else [_question(latest) for latest in latest_results(study)],
        "has_scores": metrics_in_use(study).exists(),
        "can_check_judge": can_be_checked(study),
        "form": form,
        "may_run": is_allowed(request.user, Action.ANALYSE, study) and not is_hidden,
        "error": failed.error if failed and failed.state == Job.State.FAILED else "",
        **job_context(request, study, KIND),
    }
    return render_study_page(request, "report/calibrated.html", study, context, status)


def _initial(study: Study) -> dict[str, Any]:
    is_imported = counted_origins(study) == ["imported"]
    return INITIAL | ({"sample": "unknown"} if is_imported else {})


def _question(latest: LatestResult) -> dict[str, Any]:
    shown: dict[str, Any] = {"question": latest.question, "text": latest.question.text.replace("{label}", "…")}
    shown |= {"meaning": describe_scores(latest.question), "stored": latest.stored, "is_stale": latest.is_stale}
    if latest.stored is None:
        return shown
    result, options = latest.stored.result, latest.stored.options
    shown["sentences"] = main_sentences(result, options)
    shown["result"] = result
    if result["status"] != "ok":
        return shown
    return shown | {
        "systems": [_number(row["system"], row["result"]) for row in result["systems"]],
        "pairs": [
            _number(_pair_name(row, result), row["result"]) | {"own_family": _own_family(row["own_family"])}
            for row in result["pairs"]
        ],
        "judges": [_judge(row) for row in result["judges"]],
        "biases": [_bias(row) for row in all_biases(result)],
        "judge_sentences": judge_sentences(result["judges"]),
        "bias_sentences": bias_sentences(result),
        "plan_sentences": plan_sentences(result),
        "plan": [_needs(row) for row in result["plan"]["groups"] if row["needs"]],
        "figure": plan_figure(result["plan"]["curve"]),
        "figure_group": result["plan"]["curve"].get("group", ""),
    }


def _own_family(warnings: Sequence[Mapping[str, str]]) -> str:
    """Return which judges belong to the families of which systems: by name, or their number if a system has several."""
    judges: dict[str, list[str]] = {}
    for one in warnings:
        judges.setdefault(one["system"], []).append(one["judge"])
    return ", ".join(
        f"“{own[0]}” of “{system}”" if len(own) == 1 else f"{len(own)} judges of “{system}”"
        for system, own in judges.items()
    )


def _pair_name(row: dict[str, Any], result: dict[str, Any]) -> str:
    return (
        f"{row['first']} over {row['second']}"
        if result["kind"] == "preferences"
        else f"{row['first']} – {row['second']}"
    )


def _number(name: str, result: dict[str, Any]) -> dict[str, Any]:
    human, combined = result["human"], result["combined"]
    return {
        "name": name,
        "human": points(human["estimate"]),
        "human_span": span(human["interval"]),
        "human_reason": human["reason"],
        "n": f"{result['n_labels']:,} ({human['n']:,} {human['unit']}{'' if human['n'] == 1 else 's'})",
        "combined": "–" if combined is None else points(combined["estimate"]),
        "combined_span": "–" if combined is None else span(combined["interval"]),
        "ratio": "–" if result["width_ratio"] is None else f"{result['width_ratio']:.2f}",
        "labels_saved": whole(result["labels_saved"]),
        "money_saved": "–" if result["money_saved"] is None else f"{result['money_saved']:,.2f}".replace("-", "−"),
        "fallback": result["fallback"],
    }


def _judge(row: dict[str, Any]) -> dict[str, Any]:
    bias = row["bias"]
    return row | {
        "correlation": "–" if row["correlation"] is None else f"{row['correlation']:.2f}".replace("-", "−"),
        "bias": "–" if bias.get("estimate") is None else f"{points(bias['estimate'])} ({span(bias['interval'], 0.0)})",
        "bias_reason": bias["reason"],
        "labels_saved": whole(row["labels_saved"]),
    }


def _bias(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "judge": row["judge"],
        "group": row["group"] or "no domain",
        "n_labels": row["n_labels"],
        "bias": points(row["bias"].get("estimate")),
        "bias_span": span(row["bias"].get("interval"), 0.0),
        "favour": points(row["favour"].get("estimate")),
        "favour_span": span(row["favour"].get("interval_adjusted") or row["favour"].get("interval"), 0.0),
        "is_own_family": row["is_own_family"],
    }


def _needs(row: dict[str, Any]) -> dict[str, Any]:
    return {"group": row["group"], "needs": [need | {"points": points(need["width"])} for need in row["needs"]]}
