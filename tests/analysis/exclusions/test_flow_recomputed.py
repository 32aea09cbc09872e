"""Who came, left, was left out and by what: counted once more from the exported assignments, and tested by other means."""

import io
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report
from analysis.report.report_tables import DROPOUT_LABEL, EXCLUDED_LABEL, build_attrition_block
from annotators.models import Assignment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign
from annotators.places.exclusions import create_exclusion_reversal, exclude_assignments
from studies.models import Arm, ExclusionRule, Study
from studies.services import lifecycle
from tests.builders import add_spa, draft_study, launched, user
from tests.players import play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]


@pytest.fixture
def study():
    """Two arms, two batches a person: some leave, one withdraws, one is late, two are left out by hand and one of them is taken back."""
    study = draft_study(systems=("alpha", "beta"), prompts=120, target_n=24, instructions="", batches_per_annotator=2)
    study.arms.all().delete()
    for name in ("long", "short"):
        Arm.objects.create(study=study, name=name)
    add_spa(study, m=2)
    ExclusionRule.objects.create(study=study, position=1, rule="incoherent", settings={"tau": 1.1})
    ExclusionRule.objects.create(study=study, position=2, rule="repeated", settings={"policy": "keep_first"})
    ExclusionRule.objects.create(study=study, position=3, rule="unverified", settings={}, role="sensitivity")
    launched(study)
    late = play(study, 30, until=1)
    assign.release_assignment(late.pk, "expired")
    made = [play(study, n) for n in range(12)] + [play(study, n) for n in range(4)]
    for n in range(20, 24):
        assign.release_assignment(play(study, n, until=1).pk, "returned" if n % 2 else "expired")
    play_on(late)
    assert Assignment.objects.get(pk=late.pk).is_late
    play(study, 31, until=1)
    withdraw_annotator_and_erase_texts(made[7])
    owner = user("administrator", is_superuser=True)
    first, second = exclude_assignments([made[2], made[9]], "technical", owner)
    create_exclusion_reversal(second, owner)
    exclude_assignments([made[9], made[10]], "other", owner, note="said so")
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.unblind(Study.objects.get(pk=study.pk), None, "a look")
    return Study.objects.get(pk=study.pk)


def play_on(assignment):
    from annotators.pages.record import full_page_state
    from tests.players import answered

    while (key := full_page_state(assignment).next_key) is not None:
        if answered(assignment, key).next_key is None:
            break
        assignment = Assignment.objects.get(pk=assignment.pk)


def table(study, name):
    return pd.read_csv(io.BytesIO(b"".join(csv_blocks(name, Selection(study)))), keep_default_na=False)


@pytest.mark.slow
def test_everybody_is_somewhere_once(study):
    report = build_report(study, {"resamples": 999})
    flow, rows = report["flow"], table(study, "assignments")
    rows = rows[rows["is_withdrawn"] == 0]
    submitted, released = rows["is_submitted"] == 1, rows["released_reason"] != ""
    assert (rows["is_late"] & released & submitted).sum() == 1
    assert (flow["arrived"], flow["submitted"]) == (len(rows), submitted.sum())
    assert flow["released"] == rows.loc[~submitted & released, "released_reason"].value_counts().to_dict()
    assert flow["unfinished"] == (~submitted & ~released).sum()
    assert flow["started"] == flow["submitted"] + flow["unfinished"] + sum(flow["released"].values()) == len(rows)


@pytest.mark.slow
def test_each_rule_takes_from_those_whom_the_rules_above_left(study):
    report = build_report(study, {"resamples": 999})
    flow, rows = report["flow"], table(study, "assignments")
    rows = rows[(rows["is_withdrawn"] == 0) & (rows["is_submitted"] == 1)].set_index("assignment")
    answers = table(study, "responses")
    stated = answers.assign(value=pd.to_numeric(answers["value"])).pivot_table(
        index="assignment", columns=["x", "y"], values="value"
    )
    sums = stated[("alpha", "beta")] + stated[("beta", "alpha")]
    finds = {
        "manual": rows.index[rows["exclusion"] != ""],
        "late": rows.index[rows["is_late"] == 1],
        "incoherent": sums.index[sums > 110],
        "repeated": [],
        "unverified": rows.index,
    }
    found = {rule: set(names) & set(rows.index) for rule, names in finds.items()}
    assert [len(found[rule]) for rule in ("manual", "late")] == [3, 1] and found["incoherent"] & found["manual"]
    left = rows
    assert [step["rule"] for step in flow["rules"]] == list(found)
    for step in flow["rules"]:
        here, is_applied = found[step["rule"]], step["role"] != "sensitivity"
        out = left[left.index.isin(here)] if is_applied else left.iloc[:0]
        assert (step["n_in"], step["n_flagged"], step["n_excluded"]) == (len(left), len(here), len(out)), step["rule"]
        for arm, counts in step["by_arm"].items():
            assert (counts["n_in"], counts["n_excluded"]) == ((left["arm"] == arm).sum(), (out["arm"] == arm).sum())
        left = left.drop(index=out.index)
        assert step["n_out"] == len(left)
    assert report["n"]["kept_paper"] == len(left)
    assert report["n"]["kept"] == len(rows) - len(found["manual"] | found["late"])
    applied = [rule for rule in found if rule != "unverified"]
    overlaps = Counter(tuple(sorted(rule for rule in applied if name in found[rule])) for name in rows.index)
    del overlaps[()]
    assert {tuple(one["rules"]): one["n"] for one in flow["overlaps"]} == overlaps


@pytest.mark.slow
def test_what_arms_lost(study):
    report = build_report(study, {"resamples": 999})
    rows = table(study, "assignments")
    rows = rows[rows["is_withdrawn"] == 0]
    submitted = rows["is_submitted"] == 1
    lost = {
        DROPOUT_LABEL: (rows, ~submitted & (rows["released_reason"] != "")),
        EXCLUDED_LABEL: (rows[submitted], submitted & ((rows["exclusion"] != "") | (rows["is_late"] == 1))),
    }
    (block,) = [block for block in report["blocks"] if block["name"] == "attrition"]
    for reason, (people, is_lost) in lost.items():
        n = people.groupby("arm").size()
        gone = people[is_lost.reindex(people.index)].groupby("arm").size().reindex(n.index, fill_value=0)
        mine = {
            (e["analysis"].partition(".")[2], e["settings"].get("condition")): e
            for e in block["estimates"]
            if e["settings"]["lost"] == reason
        }
        for arm in n.index:
            share = mine["share", arm]
            assert (share["n"], share["detail"]["successes"], share["estimate"]) == (
                n[arm],
                gone[arm],
                gone[arm] / n[arm],
            )
            low, high = proportion_confint(gone[arm], n[arm], method="wilson")
            assert (share["interval"]["low"], share["interval"]["high"]) == pytest.approx((low, high), abs=1e-9)
        apart = mine["difference", "short"]
        assert apart["estimate"] == pytest.approx(gone["short"] / n["short"] - gone["long"] / n["long"])
        low, high = confint_proportions_2indep(gone["short"], n["short"], gone["long"], n["long"], method="newcomb")
        assert (apart["interval"]["low"], apart["interval"]["high"]) == pytest.approx((low, high), abs=1e-9)
        (whole,) = (e for (what, _), e in mine.items() if what == "independence")
        counts = [gone.tolist(), (n - gone).tolist()]
        assert whole["test"]["pvalue"] == pytest.approx(stats.fisher_exact(counts).pvalue)


def test_whom_the_first_questions_sent_away_did_not_leave():
    """They saw nothing of their arm: counted as lost, they would hide what the arm itself drives away."""
    ended = {
        "long": {"": 20, "returned": 8, "expired": 2, "screened_out": 30, "full": 3},
        "short": {"": 28, "returned": 2, "screened_out": 33},
    }
    rows = [(arm, reason) for arm, reasons in ended.items() for reason, n in reasons.items() for _ in range(n)]
    frame = pd.DataFrame(rows, columns=["arm", "released_reason"])
    frame["assignment"], frame["is_submitted"] = range(len(frame)), frame["released_reason"] == ""
    frame["released_at"] = pd.Timestamp("2026-11-22").to_datetime64()
    frame.loc[frame["is_submitted"], "released_at"] = pd.NaT
    block = build_attrition_block(frame, [], level=0.95, resamples=99, rng=np.random.default_rng(0))
    left = [e for e in block.estimates if e.settings["lost"] == DROPOUT_LABEL]
    shares = {e.settings["condition"]: (e.detail["successes"], e.n) for e in left if e.analysis == "attrition.share"}
    assert shares == {"long": (10, 30), "short": (2, 30)}
    (whole,) = (e for e in left if e.analysis == "attrition.independence")
    # Both cells of those who left are expected to hold six: chi-square, without a correction.
    assert whole.test.pvalue == pytest.approx(stats.chi2_contingency([[10, 2], [20, 28]], correction=False).pvalue)
