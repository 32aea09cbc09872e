"""The job of a check: compare people with the judge, and hold the result against what was declared."""

from typing import TYPE_CHECKING, Any

from analysis.data.blinding import check_outcomes_visible
from analysis.data.frames import SECOND_SAMPLE, second_sample_labels
from analysis.metrics.calibrated.families import families_by_name
from analysis.metrics.lengths import by_length
from analysis.models import JudgeCheck, JudgeCheckOutput, JudgeCheckResult, Metric, PairScore
from analysis.protocols.blocks.populations import has_groups, name_groups_of_plain, name_populations_of_plain
from annotators.counting import counted_origins, is_simulated
from studies.access import Action, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from studies.services.version import version

from .binding import guideline_sha256, newest_version
from .drawing import newest_check
from .rows import NO, YES, SampledRows, read_sampled_rows

if TYPE_CHECKING:
    from pandas import DataFrame

KIND = "check_judge"
TEST, DEVELOPMENT = JudgeCheckOutput.Part.TEST, JudgeCheckOutput.Part.DEVELOPMENT
MINIMUMS = {
    "agreement": "min_agreement",
    "true_positive_rate": "min_true_positive_rate",
    "true_negative_rate": "min_true_negative_rate",
}


def request_result(study: Study, by, request_token: str | None = None) -> Job:
    """Submit the job. Raise ActionRefused if there is nothing to compute, PermissionDenied while answers by system are hidden."""
    check_permission_or_404(by, Action.ANALYSE, study)
    check = newest_check(study)
    if check is None:
        raise ActionRefused("No sample is drawn yet. Draw one while the study is a draft.")
    if not study.launched_at:
        raise ActionRefused("The study is a draft, so no person has judged an output. Launch it first.")
    check_outcomes_visible(study, counted_origins(study))
    return jobs.submit(KIND, study=study, by=by, request_token=request_token)


def compute_result(study: Study, by) -> JudgeCheckResult:
    """Compute and store the result of the newest version of the judge."""
    check = newest_check(study)
    judge = newest_version(check) if check else None
    if check is None or judge is None:
        raise ActionRefused("The judge is not in use any more. Upload the scores of a version of it.")
    check_outcomes_visible(study, counted_origins(study))
    rows = read_sampled_rows(check, judge)
    test = rows.labels[rows.labels["part"] == TEST]
    is_grouped = not rows.labels.empty and has_groups(rows.labels)
    named = name_groups_of_plain if is_grouped else lambda value: value
    measured = named(name_populations_of_plain(_measure(check, judge, rows, test)))
    criteria = _criteria(check, measured)
    is_of_robots = is_simulated(study)
    verdict, reason = _verdict(criteria, is_simulated=is_of_robots)
    development = rows.labels[rows.labels["part"] == DEVELOPMENT]
    developed = named(name_populations_of_plain(_agreement_and_rates(development)))
    return JudgeCheckResult.objects.create(
        judge_check=check,
        judge=judge,
        fingerprint=judge.fingerprint,
        guideline_sha256=guideline_sha256(check.question),
        verdict=verdict,
        n_labels=len(test),
        code_version=version(),
        by=by,
        result={
            "reason": reason,
            "criteria": criteria,
            "n_outputs": int(test["output"].nunique()),
            "n_people": int(test["annotator"].nunique()),
            "is_simulated": is_of_robots,
            **(
                {"n_groups": test[SECOND_SAMPLE].nunique(), "n_prompts": test["prompt"].nunique()} if is_grouped else {}
            ),
            "test": measured,
            "development": developed | {"differences": _differences(development)},
        },
    )


def _arrays(labels: "DataFrame") -> dict[str, Any]:
    return {
        "annotators": labels["annotator"].to_numpy(),
        "prompts": labels[SECOND_SAMPLE].to_numpy(),
        "weights": labels["weight"].to_numpy(),
    }


def _agreement_and_rates(labels: "DataFrame") -> dict[str, Any]:
    from analysis.stats import judges

    if labels.empty:
        return {"agreement": None, "rates": None, "n_labels": 0}
    agreement = judges.judge_agreement(labels["judge"], labels["people"], categories=[NO, YES], **_arrays(labels))
    rates = judges.true_positive_and_negative_rates(labels["judge"], labels["people"], positive=YES, **_arrays(labels))
    return {"agreement": agreement.as_dict(), "rates": rates.as_dict(), "n_labels": len(labels)}


def _measure(check: JudgeCheck, judge: Metric, rows: SampledRows, test: "DataFrame") -> dict[str, Any]:
    from analysis.stats import judge_probes, judge_standards

    found = _agreement_and_rates(test)
    if test.empty:
        return found
    lengths = by_length(test.drop_duplicates("output").set_index("output")["length"])
    groups = {"domain": test["domain"], "length": test["output"].map(lengths)}
    # A single group says what all outputs together say. Systems are always named.
    named = {"system": test["system"]} | {name: values for name, values in groups.items() if values.nunique() > 1}
    found["groups"] = {
        name: judge_probes.agreement_by_group(test["judge"], test["people"], values, **_arrays(test)).as_dict()
        for name, values in named.items()
    }
    codes = test.assign(code=(test["people"] == YES).astype(float)).groupby(["output", "annotator"])["code"].first()
    table = codes.unstack("annotator")
    by_output = test.drop_duplicates("output").set_index("output").loc[table.index]
    judge_codes = by_output["judge"].map({YES: 1.0, NO: 0.0}).to_numpy(dtype=float)
    prompts = by_output[SECOND_SAMPLE].to_numpy()
    alternative = judge_standards.alternative_annotator_test(
        judge_codes, table.to_numpy(), epsilon=check.epsilon, prompts=prompts
    )
    found["alternative"] = alternative.as_dict()
    found["possible"] = judge_standards.possible_agreement(
        table.to_numpy(), judge=judge_codes, prompts=prompts, weights=by_output["weight"].to_numpy(), panel_sizes=()
    ).as_dict()
    found["probes"] = _probes(judge, rows, test)
    return found


def _probes(judge: Metric, rows: SampledRows, test: "DataFrame") -> dict[str, Any]:
    """Return the probes that the data allow; None for the others."""
    from analysis.stats import judge_probes

    codes = {YES: 1.0, NO: 0.0}
    said, gave = test["people"].map(codes).to_numpy(), test["judge"].map(codes).to_numpy(dtype=float)
    found: dict[str, Any] = dict.fromkeys(("repeat", "order", "length", "family"))
    runs = rows.runs[rows.runs["part"] == TEST]
    if not runs.empty and runs["run"].nunique() > 1:
        verdicts = runs.pivot(index="output", columns="run", values="verdict")
        facts = runs.drop_duplicates("output").set_index("output").loc[verdicts.index]
        found["repeat"] = judge_probes.repeat_probe(
            verdicts.to_numpy(dtype=object), prompts=facts[SECOND_SAMPLE].to_numpy(), weights=facts["weight"].to_numpy()
        ).as_dict()
    has_text = (test["length"] > 0).to_numpy()
    if has_text.any():
        part = test[has_text]
        found["length"] = judge_probes.length_probe(
            gave[has_text], said[has_text], part["length"].to_numpy(), **_arrays(part)
        ).as_dict()
    families = families_by_name({"": judge.family}, set(test["system"]))
    is_own = test["system"].isin(families).to_numpy()
    if is_own.any() and not is_own.all():
        found["family"] = judge_probes.family_probe(gave, said, is_own, **_arrays(test)).as_dict()
    if pairs := _pairs_in_both_orders(judge):
        original, exchanged, prompts = zip(*pairs, strict=True)
        found["order"] = judge_probes.order_probe(list(original), list(exchanged), prompts=list(prompts)).as_dict()
    return found


def _pairs_in_both_orders(judge: Metric) -> list[tuple[float, float, str | None]]:
    """Return the mean preference for the first output of each pair in both orders, and the group of the prompt, or the prompt."""
    rows = PairScore.objects.filter(
        metric__study=judge.study_id, metric__discarded_at=None, metric__fingerprint=judge.fingerprint
    )
    by_order: dict[tuple[int, int], list[float]] = {}
    prompts: dict[tuple[int, int], str | None] = {}
    for first, second, prompt, group, value in rows.values_list(
        "first_id", "second_id", "first__prompt__key", "first__prompt__group", "value"
    ):
        by_order.setdefault((first, second), []).append(value)
        (prompts[first, second],) = second_sample_labels([prompt], [group])
    means = {pair: sum(values) / len(values) for pair, values in by_order.items()}
    return [
        (means[first, second], 1 - means[second, first], prompts[first, second])
        for first, second in sorted(means)
        if first < second and (second, first) in means
    ]


def _criteria(check: JudgeCheck, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was declared, what was found, and whether it is met (None: undefined)."""
    found = []
    for name, column in MINIMUMS.items():
        minimum = getattr(check, column)
        if minimum is None:
            continue
        source = measured["agreement"] if name == "agreement" else measured["rates"]
        estimate = source[name] if source else None
        interval = estimate["interval"] if estimate else None
        found.append(
            {
                "name": name,
                "minimum": minimum,
                "estimate": estimate["estimate"] if estimate else None,
                "low": interval["low"] if interval else None,
                "high": interval["high"] if interval else None,
                "population": estimate["settings"]["population"] if estimate else None,
                "is_met": interval["low"] > minimum if interval else None,
                "reason": "" if interval else (estimate["reason"] if estimate else "no person judged an output"),
            }
        )
    if check.needs_alternative_test:
        alternative = measured.get("alternative")
        rate = alternative["winning_rate"] if alternative else None
        found.append(
            {
                "name": "alternative_annotator_test",
                "minimum": 0.5,
                "estimate": rate["estimate"] if rate else None,
                "low": None,
                "high": None,
                "is_met": alternative["is_passed"] if alternative else None,
                "reason": rate["reason"] if rate else "no person judged an output",
            }
        )
    return found


def _verdict(criteria: list[dict[str, Any]], *, is_simulated: bool) -> tuple[str, str]:
    """Return the verdict and why. All that was declared must be met."""
    Verdict = JudgeCheckResult.Verdict
    if is_simulated:
        return Verdict.OPEN, "robots gave the answers"
    if any(one["is_met"] is False for one in criteria):
        return Verdict.NOT_GOOD, ""
    undefined = [one["reason"] or "a number is undefined" for one in criteria if one["is_met"] is None]
    return (Verdict.OPEN, undefined[0]) if undefined else (Verdict.GOOD, "")


def _differences(labels: "DataFrame", n: int = 50) -> list[dict[str, Any]]:
    """Return outputs of the development part on which most people and the judge differ, for changing the judge."""
    found = []
    for _, rows in labels.groupby("output", sort=False):
        n_yes = int((rows["people"] == YES).sum())
        first = rows.iloc[0]
        if first["judge"] is not None and (n_yes * 2 > len(rows)) != (first["judge"] == YES) and n_yes * 2 != len(rows):
            found.append(
                {
                    "output": int(first["output"]),
                    "prompt": first["prompt"],
                    "system": first["system"],
                    "judge": first["judge"],
                    "n_yes": n_yes,
                    "n_people": len(rows),
                }
            )
    return found[:n]
