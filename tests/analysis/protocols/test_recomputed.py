"""Every protocol's numbers, computed once more from the exported table, by other means than the report's."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from analysis.report.build import build_report
from annotators.places.exclusions import exclude_assignments
from studies.models import Contrast, Question, Study
from studies.protocols.base.fields import TIE
from studies.services import lifecycle
from tests.analysis.protocols.recomputing import (
    Coincidences,
    about,
    adjusted_within_families,
    claim,
    claimed,
    exported,
    found,
    is_same,
    opponents,
    pairs_of,
)
from tests.analysis.stats.comparisons import score_t
from tests.builders import (
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_spa,
    draft_study,
    humanlike_draft,
    launched,
    user,
)
from tests.players import STRENGTHS, play

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("same_orders")]
PEOPLE, LEFT, EXCLUDED = 14, 2, (4,)
# Two comparisons without a section are claims about stated chances, relative points, ranks, marks and choices: one family.
CLAIMS = 10
KEPT = PEOPLE - LEFT - len(EXCLUDED)


@pytest.fixture
def study():
    """All protocols in one study: some people leave, one is left out, some questions are skipped, ratings stand in two sections."""
    study = draft_study(prompts=200, target_n=PEOPLE, instructions="", annotators_per_batch=2)
    spa = add_spa(study, position=1, m=2)
    add_rating(study, position=2, reuses=spa, m=2)
    add_rating(study, position=3, m=3)
    for position, add in enumerate((add_relative, add_ranking, add_marks, add_choice), 4):
        study.contrasts.all().delete()
        options = {"stopping": "none", "strategy": "any", "allows_tie": True} if add is add_choice else {}
        add(study, position=position, m=6 if add in (add_relative, add_choice) else 3, **options)
    Question.objects.filter(section__protocol__in=["rating", "relative", "two_choice"]).update(
        skip_reasons=[{"key": "cannot_judge", "label": "I cannot judge"}]
    )
    launched(study)
    people = [play(study, n) for n in range(PEOPLE - LEFT)]
    for n in range(LEFT):
        play(study, PEOPLE + n, until=5 + 9 * n)
    exclude_assignments([people[n] for n in EXCLUDED], "technical", user("administrator", is_superuser=True))
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


@pytest.fixture
def report(study):
    result = build_report(study, {"resamples": 99})
    assert not result["problems"], result["problems"]
    return result


@pytest.fixture
def rows(study):
    return exported(study)


def test_all_of_it(report, rows, study):
    """One study, since making it costs more than all that is asked of it."""
    assert report["n"] == {"arrived": PEOPLE, "submitted": PEOPLE - LEFT, "kept": KEPT, "kept_paper": KEPT}
    primary = [conclusion for conclusion in report["conclusions"] if conclusion["role"] == "primary"]
    assert len(primary) == CLAIMS, [conclusion["contrast"] for conclusion in primary]
    assert {family["family"]: family["size"] for family in report["families"]}["primary"] == CLAIMS
    assert rows["annotator"].nunique() == KEPT and (rows["skip_reason"] != "").sum() > 20
    for check in (probabilities, ratings, relative_points, rankings, marks, choices, agreement):
        check(report, rows, study)


def probabilities(report, rows, study):
    table = rows[rows["section"] == 1].pivot_table(index="annotator", columns=["x", "y"], values="value")
    batch = rows.groupby("annotator")["batch"].first()
    for name, mode in (("spa.pairs", "recommended"), ("spa.pairs", "paper")):
        estimates = found(report, name, mode)
        assert len(estimates) == 2
        for estimate in estimates:
            x, y = about(estimate)["x"], about(estimate)["y"]
            stated = table[x, y] / 100 if mode == "paper" else (table[x, y] + 100 - table[y, x]) / 200
            if mode == "paper":
                is_same(estimate, stated.mean(), stats.ttest_1samp(stated, 0.5).pvalue, KEPT)
            else:
                # Two people have each batch of prompts.
                is_same(estimate, *claimed(stated, stated.index, batch[stated.index], 0.5), KEPT)
                assert estimate["detail"]["n_batches"] == batch.nunique() >= 5
                (alone,) = [one for one in estimate["sensitivity"] if one["analysis"] == "spa.pair.by_annotator"]
                is_same(alone, stated.mean(), score_t(stated, 0.5, (0, 1))[0], KEPT)
                # What a test finds at the level of one of all primary claims, not what one test alone would.
                _, se, df, _ = claim(stated, stated.index, batch[stated.index])
                n = int(df) + 1
                d = TTestPower().solve_power(nobs=n, alpha=0.05 / CLAIMS, power=0.8)
                assert estimate["detail"]["detectable_difference"] == pytest.approx(d * se * n**0.5, rel=1e-4)
        assert (
            adjusted_within_families(estimates) == {"spa.paper.primary": 2} if mode == "paper" else {"primary": CLAIMS}
        )
    for estimate in found(report, "spa.order"):
        gap = (
            table[about(estimate)["x"], about(estimate)["y"]] + table[about(estimate)["y"], about(estimate)["x"]]
        ) / 100 - 1
        is_same(estimate, gap.mean(), stats.ttest_1samp(gap, 0).pvalue, KEPT)


def ratings(report, rows, study):
    above, apart, paper = (
        found(report, f"rating.{name}", mode)
        for name, mode in (("superiority", "recommended"), ("difference", "recommended"), ("difference", "paper"))
    )
    assert [about(estimate)["section"] for estimate in above] == [2, 2, 3, 3]
    for one, two, three in zip(above, apart, paper, strict=True):
        x, y, section = (about(one)[name] for name in ("x", "y", "section"))
        mine = rows[(rows["section"] == section) & rows["value"].notna()]
        pairs = pairs_of(mine, x, y)
        is_same(
            one,
            *claimed((np.sign(pairs[x] - pairs[y]) + 1) / 2, pairs["annotator"], pairs["prompt"], 0.5),
            pairs["annotator"].nunique(),
        )
        is_same(two, *claimed(pairs[x] - pairs[y], pairs["annotator"], pairs["prompt"], 0.0, bounds=(-4, 4)))
        assert one["settings"]["population"] == "people and prompts"
        assert one["detail"]["n_prompts"] == pairs["prompt"].nunique()
        means = pairs.groupby("annotator")[[x, y]].mean()
        is_same(three, (means[x] - means[y]).mean(), stats.ttest_rel(means[x], means[y]).pvalue)
        assert two["sensitivity"] and one["n_rows"] >= len(pairs)
    for estimates, name in ((above, "superiority"), (apart, "difference"), (paper, "paper")):
        assert adjusted_within_families(estimates) == {f"rating.{name}.primary": 4}
    for mean in found(report, "rating.means"):
        mine = rows[(rows["section"] == mean["settings"]["section"]) & (rows["system"] == mean["settings"]["system"])]
        own = mine.groupby("annotator")["value"].mean().dropna()
        assert mean["estimate"] == pytest.approx(own.mean())
        given = mine[mine["value"].notna()]
        weights = 1 / given.groupby("annotator")["value"].transform("size")
        for end in (mean["interval"]["low"], mean["interval"]["high"]):
            _, pvalue = claimed(given["value"], given["annotator"], given["prompt"], end, weights, bounds=(1, 5))
            assert pvalue == pytest.approx(0.05, rel=1e-4)


def relative_points(report, rows, study):
    shown = opponents(study)
    mine = rows[(rows["section"] == 4) & rows["value"].notna()]
    estimates = found(report, "relative.score")
    answers = zip(
        estimates, found(report, "relative.superiority"), found(report, "relative.score", "paper"), strict=True
    )
    n_rows = 0
    for one, above, paper in answers:
        x, y = about(one)["x"], about(one)["y"]
        pair = mine[mine["item"].map(lambda item, pair={x, y}: shown[item] == pair)]
        score = (pair["value"] - 3) * np.where(pair["system"] == x, 1, -1)
        n_rows += len(score)
        is_same(
            one, *claimed(score, pair["annotator"], pair["prompt"], 0.0, bounds=(-2, 2)), pair["annotator"].nunique()
        )
        is_same(above, *claimed((np.sign(score) + 1) / 2, pair["annotator"], pair["prompt"], 0.5))
        is_same(paper, score.mean(), stats.ttest_1samp(score, 0).pvalue, len(score))
    assert n_rows == len(mine)
    assert adjusted_within_families(estimates) == {"primary": CLAIMS, "relative.score.not planned": 1}


def rankings(report, rows, study):
    mine = rows[rows["section"] == 5]
    estimates = found(report, "ranking.share")
    assert {frozenset((about(e)["x"], about(e)["y"])) for e in estimates} == set(
        map(frozenset, combinations(STRENGTHS, 2))
    )
    for estimate in estimates:
        x, y = about(estimate)["x"], about(estimate)["y"]
        pairs = pairs_of(mine, x, y)
        is_same(
            estimate, *claimed((np.sign(pairs[y] - pairs[x]) + 1) / 2, pairs["annotator"], pairs["prompt"], 0.5), KEPT
        )
    # What was typed has the same order as the mid-ranks that are stored.
    for _, ranking in mine.groupby(["annotator", "item"]):
        assert ranking["value"].tolist() == stats.rankdata(ranking["text"].astype(int)).tolist()
    means = {e["settings"]["system"]: e["estimate"] for e in found(report, "ranking.means")}
    assert means == {system: pytest.approx(mean) for system, mean in mine.groupby("system")["value"].mean().items()}
    (friedman,) = found(report, "ranking.friedman", "paper")
    own = mine.pivot_table(index="annotator", columns="system", values="value")
    assert friedman["test"]["pvalue"] == pytest.approx(stats.friedmanchisquare(*own.to_numpy().T).pvalue)


def marks(report, rows, study):
    mine = rows[rows["section"] == 6]
    key = ["annotator", "item", "prompt", "system"]
    of = mine[mine["question"] == "errors"].groupby(key)["value"].sum().rename("penalty").reset_index()
    of["score"] = of.merge(mine[mine["question"] == "score"], on=key, how="left")["value"]
    for name, sign in (("score", 1), ("penalty", -1)):
        for estimate in found(report, f"marks.{name}"):
            x, y = about(estimate)["x"], about(estimate)["y"]
            pairs = pairs_of(of, x, y, values=name)
            apart = sign * (pairs[x] - pairs[y])
            is_same(estimate, *claimed(apart, pairs["annotator"], pairs["prompt"], 0.0, bounds=None))
    for estimate in found(report, "marks.standard", "paper"):
        kind, system = (estimate["settings"][name] for name in ("measure", "system"))
        if kind != "per_100_words":
            assert estimate["estimate"] == pytest.approx(of[of["system"] == system][kind].mean())


def choices(report, rows, study):
    shown = opponents(study)
    mine = rows[rows["section"] == 7]
    assert (mine["choice"] == TIE).sum() > 5
    estimates = found(report, "choice.preference")
    for estimate, paper in zip(estimates, found(report, "choice.preference", "paper"), strict=True):
        x, y = about(estimate)["x"], about(estimate)["y"]
        pair = mine[mine["item"].map(lambda item, pair={x, y}: shown[item] == pair)]
        value = pd.Series(
            np.select(
                [pair["chosen_system"] == x, pair["chosen_system"] == y, pair["choice"] == TIE], [1, 0, 0.5], np.nan
            ),
            index=pair.index,
        )
        said = pair[value.notna()]
        # Everybody has the same weight, whatever the number of their labels.
        weight = 1 / said.groupby("annotator")["annotator"].transform("size")
        is_same(
            estimate,
            *claimed(value.dropna(), said["annotator"], said["prompt"], 0.5, weight),
            said["annotator"].nunique(),
        )
        assert estimate["estimate"] == pytest.approx(value.groupby(pair["annotator"]).mean().mean())
        assert estimate["detail"]["n_ties"] == (value == 0.5).sum()
        assert estimate["detail"]["n_skipped"] == (pair["skip_reason"] != "").sum()
        first = value[value != 0.5].groupby(pair["item"]).first().dropna()
        assert paper["detail"]["n_answers"] <= len(first)
    assert adjusted_within_families(estimates) == {"primary": CLAIMS, "choice.preference.not planned": 1}


@pytest.mark.slow
def test_human_or_machine(same_orders):
    study = launched(humanlike_draft(conditions=("none", "examples"), domains=("news", "stories"), target_n=18, m=5))
    people = [play(study, n) for n in range(16)]
    for n in range(2):
        play(study, 16 + n, until=6)
    exclude_assignments(people[:1], "technical", user("administrator", is_superuser=True))
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    report = build_report(study, {"resamples": 99})
    assert not report["problems"] and report["n"]["kept"] == 15
    words = "\n".join(report["methods"])
    assert (
        "(4 tests) are adjusted by Bonferroni's method" in words and "(2 tests) are adjusted by Holm's method" in words
    )
    assert "humanlike." not in words
    rows = exported(study)
    rows = rows[(rows["purpose"] == "live") & (rows["question"] == "source") & rows["value"].notna()]
    machine, says = rows["system"] != "human", rows["value"] > 2.5
    rows = rows.assign(machine=machine, says=says, correct=machine == says)
    estimates = found(report, "humanlike.paper", "paper")
    cells = [(None, condition) for condition in ("none", "examples")]
    cells += [(domain, condition) for domain in ("news", "stories") for condition in ("none", "examples")]

    def accuracies(domain, condition):
        mine = rows[(rows["condition"] == condition) & (rows["domain"] == domain if domain else True)]
        return mine.groupby("annotator")["correct"].mean()

    tests = {
        (e["settings"]["domain"], e["settings"]["condition"]): e for e in estimates if e["test"] and e["test"]["family"]
    }
    for domain, condition in cells:
        test, own = tests[domain or "all", condition]["test"], accuracies(domain, condition)
        if condition == "none":
            expected = stats.ttest_1samp(own, 0.5).pvalue
        else:
            expected = stats.ttest_ind(own, accuracies(domain, "none"), equal_var=False).pvalue
        assert test["pvalue"] == pytest.approx(expected) and test["family_size"] == 4
        assert test["pvalue_adjusted"] == pytest.approx(min(1.0, 4 * expected))
    seen = set()
    for estimate in found(report, "humanlike.detection"):
        domain, condition = estimate["settings"]["domain"], estimate["settings"]["condition"]
        mine = rows[(rows["condition"] == condition) & (rows["domain"].eq(domain) | (domain == "all"))]
        hits, false = mine.loc[mine["machine"], "says"], mine.loc[~mine["machine"], "says"]
        z = [stats.norm.ppf((part.sum() + 0.5) / (len(part) + 1)) for part in (hits, false)]
        above = mine.loc[mine["machine"], "value"].to_numpy()[:, None] - mine.loc[~mine["machine"], "value"].to_numpy()
        expected = {
            "humanlike.sensitivity": z[0] - z[1],
            "humanlike.criterion": -(z[0] + z[1]) / 2,
            "humanlike.accuracy": mine["correct"].mean(),
            "humanlike.auc": (np.sign(above) + 1).mean() / 2,
            "humanlike.share_human": 1 - mine["says"].mean(),
            "humanlike.bias": mine["machine"].mean() - mine["says"].mean(),
        }

        seen.add(estimate["analysis"])
        assert estimate["estimate"] == pytest.approx(expected[estimate["analysis"]]), estimate["analysis"]
    assert seen == set(expected)


@pytest.mark.slow
def test_utilities_between_planted_references(same_orders):
    study = draft_study(systems=("alpha", "beta", "bottom", "top"), prompts=60, target_n=12, instructions="")
    for name, kind in (("top", "maximal"), ("bottom", "minimal")):
        study.systems.filter(name=name).update(reference=kind)
    section = add_rating(study, position=1, m=3)
    section.questions.update(scale={"kind": "continuous", "minimum": 0, "maximum": 100, "low": "bad", "high": "good"})
    for estimand in ("utility", "difference"):
        x, y = (study.systems.get(name=name) for name in ("beta", "alpha"))
        Contrast.objects.create(study=study, x=x, y=y, estimand=estimand, expected=">")
    launched(study)
    for n in range(12, 24):
        play(study, n, strengths={"bottom": -2.0, "alpha": 0.0, "beta": 0.5, "top": 2.5})
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    report = build_report(study, {"resamples": 99})
    assert not report["problems"]
    rows = exported(study)
    ends = rows.pivot_table(index="annotator", columns="system", values="value")
    has_scale = (ends["top"] - ends["bottom"]) >= 10
    assert 0 < has_scale.sum() < 12, "some share no ends"
    rows = rows[rows["annotator"].isin(ends.index[has_scale])]
    low, high = (rows["annotator"].map(ends[name]) for name in ("bottom", "top"))
    rows = rows.assign(utility=(rows["value"] - low) / (high - low))
    own = rows.pivot_table(index="annotator", columns="system", values="utility")
    found_of = {e["settings"]["system"]: e for e in found(report, "rating.utility")}
    assert set(found_of) == {"alpha", "beta"}
    for system, estimate in found_of.items():
        assert estimate["estimate"] == pytest.approx(own[system].mean()) and estimate["n"] == has_scale.sum()
    (difference,) = found(report, "rating.utility_difference")
    apart = own["beta"] - own["alpha"]
    is_same(difference, apart.mean(), stats.ttest_1samp(apart, 0).pvalue, has_scale.sum())


def agreement(report, rows, study):
    """What is resampled: outputs that were rated, prompts whose outputs were ranked, items of two outputs."""
    cases = [
        (
            found(report, "rating.checks")[0],
            rows[rows["section"] == 2],
            ["prompt", "system"],
            ["prompt", "system"],
            True,
        ),
        (found(report, "ranking.checks")[0], rows[rows["section"] == 5], ["item", "system"], ["item"], False),
    ]
    shown, relative = opponents(study), rows[rows["section"] == 4]
    for estimate in found(report, "relative.checks"):
        if estimate["analysis"] == "krippendorff_alpha":
            x, y = about(estimate)["x"], about(estimate)["y"]
            pair = relative[[shown[item] == {x, y} for item in relative["item"]]]
            pair = pair.assign(value=(pair["value"] - 3) * np.where(pair["system"] == x, 1, -1))
            cases.append((estimate, pair, ["item"], ["item"], True))
    assert len(cases) == 5
    for estimate, *case in cases:
        one = Coincidences(*case)
        assert estimate["estimate"] == pytest.approx(one.alpha(np.arange(one.n_groups)))
        assert (estimate["n"], estimate["n_clusters"], estimate["n_rows"]) == (one.n, one.n_groups, one.n_rows)
        rng = np.random.default_rng(0)
        draws = np.array([one.alpha(rng.integers(0, one.n_groups, one.n_groups)) for _ in range(2000)])
        draws = draws[~np.isnan(draws)]
        # Of others .025 lie beyond an end that 999 resamples found, within five standard errors of both.
        low, high = estimate["interval"]["low"], estimate["interval"]["high"]
        for beyond in (draws < low, draws > high):
            assert beyond.mean() <= 0.025 + 5 * (0.025 * 0.975 * (1 / 999 + 1 / len(draws))) ** 0.5
        assert ((draws > low) & (draws < high)).mean() < 0.995
