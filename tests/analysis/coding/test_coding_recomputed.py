"""What the report says of codings, computed once more from the exported table, by other means than the report's."""

import io
import random

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from analysis.coding import samples
from analysis.coding.codebook import EXPLANATIONS_CODEBOOK, REJECTIONS_CODEBOOK
from analysis.coding.samples import draw_coding_sample, read_coded_samples
from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection
from analysis.report.coding_blocks import build_coding_blocks
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Study, StudyMember
from tests.builders import humanlike_draft, launched, user
from tests.players import submitted

pytestmark = pytest.mark.django_db
CONDITIONS = ("none", "instructions")
KINDS = (
    ("explanations", "union"),
    ("explanations", "intersection"),
    ("explanations", "both_counted"),
    ("explanations", "third"),
    ("rejections", "union"),
    ("rejections", "third"),
)
PEOPLE, RESAMPLES = 24, 9999
COUNTED = ("Form", "Content", "Machine capabilities")


def some(rng, keys, share):
    return [key for key in keys if rng.random() < share]


@pytest.fixture
def coded_samples():
    """Of each sample (rule, items that both coded, the report's estimates): half-coded, thought over, and one annotator withdraws."""
    study = humanlike_draft(conditions=CONDITIONS, domains=("news",), target_n=PEOPLE, owner=user("olga"), m=1)
    launched(study)
    people = [submitted(study, f"w{n}", comment=f"It was plain from the ending, {n}") for n in range(PEOPLE)]
    coders = [user(name) for name in ("carl", "cora", "thea")]
    StudyMember.objects.bulk_create(StudyMember(study=study, user=coder, role="coder") for coder in coders)
    for kind, rule in KINDS:
        book = EXPLANATIONS_CODEBOOK if kind == "explanations" else REJECTIONS_CODEBOOK
        who = coders if rule == "third" else coders[:2]
        code(
            draw_coding_sample(study, kind=kind, rule=rule, codebook=book, per_arm=12, coders=who, by=None),
            who,
            book.keys,
        )
    withdraw_annotator_and_erase_texts(people[3])
    return read(Study.objects.get(pk=study.pk))


def code(sample, coders, keys):
    rng = random.Random(sample.number)
    for number, item in enumerate(sample.items.all()):
        first = some(rng, keys, 0.15)
        second = some(rng, first, 0.7) + some(rng, [key for key in keys if key not in first], 0.04)
        both = zip(coders, (first, second), strict=False)
        for coder, labels in list(both)[: 1 if number % 10 == 4 else 2]:
            seen = number % 5 == 2
            if seen:
                samples.store_coding(item, coder, [keys[1]], False, 0)
            samples.store_coding(item, coder, labels, not labels, int(seen))
        if len(coders) == 3 and set(first) != set(second) and number % 10 != 4 and rng.random() < 0.6:
            samples.store_coding(item, coders[2], first, not first, 0)


def read(study):
    table = pd.read_csv(io.BytesIO(b"".join(csv_blocks("codings", Selection(study)))), keep_default_na=False)
    table = table[table["is_current"] == 1]
    table["labels"] = [frozenset(filter(None, cell.split(";"))) for cell in table["labels"]]
    made = build_coding_blocks(read_coded_samples(study, ["live"]), level=0.95, resamples=RESAMPLES, seed="00")
    rows = []
    for number, mine in table.groupby("sample"):
        items = {}
        for row in mine.itertuples():
            items.setdefault(row.item, {"condition": row.condition})[row.coder] = row.labels
        both = [one for one in items.values() if 1 in one and 2 in one]
        assert len(both) < len(items) < PEOPLE
        estimates = [e for block in made for e in block.estimates if e.settings["sample"] == number]
        rows.append((mine["kind"].iloc[0], mine["rule"].iloc[0], both, estimates))
    return rows


@pytest.mark.slow
def test_all_of_it(coded_samples):
    assert [sample[:2] for sample in coded_samples] == list(KINDS)
    for kind, rule, both, estimates in coded_samples:
        agreement(both, estimates)
        check = categories if kind == "explanations" else refusals
        check(both, rule, estimates)


def near(interval, draws, resamples=RESAMPLES):
    """About as many of other resamples lie beyond each end: .025, within five standard errors of both."""
    few = 5 * (0.025 * 0.975 * (1 / resamples + 1 / len(draws))) ** 0.5
    for beyond, up_to in (
        (draws < interval.low, draws <= interval.low),
        (draws > interval.high, draws >= interval.high),
    ):
        assert beyond.mean() <= 0.025 + few and up_to.mean() >= 0.025 - few, (
            interval,
            np.quantile(draws, [0.025, 0.975]),
        )


def masi(a, b):
    if a == b:
        return 0.0
    return 1 - len(a & b) / len(a | b) * (2 / 3 if a <= b or b <= a else 1 / 3) if a & b else 1.0


def agreement(both, estimates):
    """The two by themselves: alpha with the distance of every two codings, kappa of statsmodels, Fisher's z about it."""
    (alpha,) = (e for e in estimates if e.analysis == "coding.alpha")
    sets = [one[1] for one in both] + [one[2] for one in both]
    n = len(both)
    apart = np.array([[masi(a, b) for b in sets] for a in sets])

    def alpha_of(items):
        every = np.concatenate([items, items + n])
        return 1 - apart[items, items + n].mean() / (apart[np.ix_(every, every)].sum() / (2 * n * (2 * n - 1)))

    assert alpha.estimate == pytest.approx(alpha_of(np.arange(n))) and (alpha.n, alpha.n_rows) == (n, 2 * n)
    rng = np.random.default_rng(0)
    near(alpha.interval, np.array([alpha_of(rng.integers(0, n, n)) for _ in range(4000)]), 999)
    for kappa in (e for e in estimates if e.analysis in ("coding.label", "coding.refused")):
        label = kappa.settings["label"]
        one, two = (
            [bool(labels) if label == "any" else label in labels for labels in side] for side in (sets[:n], sets[n:])
        )
        counts = np.array(
            [[sum(a == x and b == y for a, b in zip(one, two, strict=True)) for y in (0, 1)] for x in (0, 1)]
        )
        assert kappa.detail["percent_agreement"] == pytest.approx(np.trace(counts) / n)
        if label != "any":
            assert kappa.detail["prevalence"] == pytest.approx((sum(one) + sum(two)) / 2 / n)
            assert kappa.detail.get("positive_agreement", 0) == pytest.approx(
                2 * counts[1, 1] / max(sum(one) + sum(two), 1)
            )
        if kappa.estimate is None:
            assert (
                sum(one) + sum(two) in (0, 2 * n)
                and kappa.reason == "both coders gave one and the same code throughout"
            )
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            theirs = cohens_kappa(counts)
        assert kappa.estimate == pytest.approx(theirs.kappa) and kappa.n == n
        if kappa.interval is None:
            assert not theirs.std_kappa > 1e-6 and kappa.reason == "the standard error is 0"
            continue
        half = stats.norm.ppf(0.975) * theirs.std_kappa / (1 - theirs.kappa**2)
        ends = np.tanh([np.arctanh(theirs.kappa) - half, np.arctanh(theirs.kappa) + half])
        assert (kappa.interval.low, kappa.interval.high) == pytest.approx(tuple(ends))


def counted(one, rule):
    """The codings that count for an item, as its rule says; None where a third has still to decide."""
    if rule == "third":
        return [one[1]] if one[1] == one[2] else [one[3]] if 3 in one else None
    return {"union": [one[1] | one[2]], "intersection": [one[1] & one[2]], "both_counted": [one[1], one[2]]}[rule]


def categories(both, rule, estimates):
    """Shares of the labels given, by category, Null left out; comments are resampled, those of which no label counts left out."""
    home = {label.key: label.category for label in EXPLANATIONS_CODEBOOK.labels}
    tables, draws = {}, {}
    rng = np.random.default_rng(0)
    for condition in CONDITIONS:
        items = [sets for one in both if one["condition"] == condition and (sets := counted(one, rule)) is not None]
        given = [[home[key] for labels in sets for key in labels] for sets in items]
        table = np.array([[mine.count(name) for name in COUNTED] for mine in given])
        tables[condition] = table = table[table.sum(axis=1) > 0]
        mine = [e for e in estimates if e.analysis == "coding.category_share" and e.settings["condition"] == condition]
        assert [e.settings["category"] for e in mine] == list(COUNTED)
        assert [e.estimate for e in mine] == pytest.approx(list(table.sum(axis=0) / table.sum()))
        assert {(e.n, e.n_rows, e.unit) for e in mine} == {(len(table), table.sum(), "comment")}
        drawn = table[rng.integers(0, len(table), (4000, len(table)))].sum(axis=1)
        draws[condition] = drawn / drawn.sum(axis=1, keepdims=True)
        for e, column in zip(mine, draws[condition].T, strict=True):
            if e.interval is None:
                assert np.ptp(column) == 0 and e.reason == "all resamples give the same value"
            else:
                near(e.interval, column)
    apart = [e for e in estimates if e.analysis == "coding.category_share_difference"]
    assert {(e.settings["condition"], e.settings["reference"]) for e in apart} == {("instructions", "none")}
    none, trained = (tables[condition] for condition in CONDITIONS)
    expected = trained.sum(axis=0) / trained.sum() - none.sum(axis=0) / none.sum()
    assert [e.estimate for e in apart] == pytest.approx(list(expected))
    for e, column in zip(apart, (draws["instructions"] - draws["none"]).T, strict=True):
        assert (e.n, e.n_rows) == (len(none) + len(trained), none.sum() + trained.sum())
        if e.interval is not None:
            near(e.interval, column)


def refusals(both, rule, estimates):
    """Work is refused where the codings that count give any reason."""
    for condition in CONDITIONS:
        (share,) = (
            e for e in estimates if e.analysis == "coding.refused_share" and e.settings["condition"] == condition
        )
        decided = [sets for one in both if one["condition"] == condition and (sets := counted(one, rule)) is not None]
        refused = sum(any(sets) for sets in decided)
        assert (share.n, share.unit) == (len(decided), "annotator") and share.estimate == pytest.approx(
            refused / len(decided)
        )
        low, high = proportion_confint(refused, len(decided), method="wilson")
        assert (share.interval.low, share.interval.high) == pytest.approx((low, high), abs=1e-9)
