"""Errors, competence and severity of annotators: the published example, a plain oracle, and truths that are found again."""

import numpy as np
import pytest

from analysis.stats.annotator_models import competence_model, dawid_skene, severity
from tests.analysis.stats.annotator_models.anaesthetists import anaesthetists
from tests.analysis.stats.annotator_models.plain import plain_competence, plain_dawid_skene


def crowd(n_items=400, seed=4):
    """Answers of six people to items of three classes: four err in known ways, and two guess."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n_items, p=[0.5, 0.3, 0.2])
    careful, bold = np.full((3, 3), 0.1) + 0.7 * np.eye(3), np.full((3, 3), 0.05) + 0.85 * np.eye(3)
    shifting = np.array([[0.6, 0.4, 0.0], [0.0, 0.7, 0.3], [0.0, 0.1, 0.9]])
    guessing = np.tile([0.2, 0.5, 0.3], (3, 1))
    matrices = [careful, bold, careful, shifting, guessing, guessing]
    rows = [
        (i, k, int(rng.choice(3, p=matrix[truth[i]])))
        for i in range(n_items)
        for k, matrix in enumerate(matrices)
        if rng.random() < 0.8
    ]
    items, people, answers = zip(*rows, strict=True)
    return items, people, [str(a) for a in answers], matrices


def test_the_published_example_of_the_anaesthetists():
    patients, who, judged = anaesthetists()
    assert (len(judged), len(set(patients))) == (315, 45)
    model = dawid_skene(patients, who, judged)
    # Table 2 of the paper.
    assert [round(share, 2) for share in model.shares] == [0.40, 0.42, 0.11, 0.07]
    first = model.annotators[0].confusion
    assert [[round(p, 2) for p in row] for row in first] == [
        [0.89, 0.11, 0.00, 0.00], [0.07, 0.88, 0.05, 0.00], [0.00, 0.34, 0.66, 0.00], [0.00, 0.00, 0.56, 0.44],
    ]  # fmt: skip
    assert (model.n_items, model.n_answers, [one.n for one in model.annotators]) == (45, 315, [135, 45, 45, 45, 45])


@pytest.mark.parametrize("pseudo_count", [0.0, 0.5])
def test_dawid_skene_agrees_with_plain_loops(pseudo_count):
    patients, who, judged = anaesthetists()
    shares, confusion, truth, likelihood = plain_dawid_skene(patients, who, judged, pseudo_count)
    model = dawid_skene(patients, who, judged, pseudo_count=pseudo_count)
    assert model.shares == pytest.approx([shares[j] for j in model.answers], abs=1e-8)
    assert model.log_likelihood == pytest.approx(likelihood, abs=1e-7)
    for one in model.annotators:
        k = int(one.annotator)
        for j, row in zip(model.answers, one.confusion, strict=True):
            assert row == pytest.approx([confusion[k][j][a] for a in model.answers], abs=1e-8)
        own = [(i, a) for i, w, a in zip(patients, who, judged, strict=True) if w == k]
        assert one.error_rate == pytest.approx(1 - sum(truth[i][a] for i, a in own) / len(own), abs=1e-8)


def test_competence_agrees_with_plain_loops():
    patients, who, judged = anaesthetists()
    theta, truth = plain_competence(patients, who, judged, 0.1)
    model = competence_model(patients, who, judged)
    assert [one.competence for one in model.annotators] == pytest.approx(
        [theta[int(one.annotator)] for one in model.annotators], abs=1e-8
    )
    shares = [sum(one[j] for one in truth.values()) / len(truth) for j in model.answers]
    assert model.shares == pytest.approx(shares, abs=1e-8)


def test_known_errors_are_found_again():
    items, people, answers, matrices = crowd(3000)
    model = dawid_skene(items, people, answers)
    for one, matrix in zip(model.annotators, matrices, strict=True):
        # Four standard errors of the rarest class, which has about 480 answers of each person.
        assert np.abs(np.array(one.confusion) - matrix).max() < 0.09
    assert model.shares == pytest.approx([0.5, 0.3, 0.2], abs=0.03)


@pytest.mark.slow
def test_guessers_have_no_competence():
    items, people, answers, _ = crowd(3000)
    found = {one.annotator: one.competence for one in competence_model(items, people, answers).annotators}
    # The careful intend 0.7 of their answers and guess evenly, the bold 0.85.
    assert found["0"] == pytest.approx(0.7, abs=0.04) and found["1"] == pytest.approx(0.85, abs=0.04)
    assert found["4"] < 0.05 and found["5"] < 0.05


def test_names_and_the_order_of_rows_do_not_matter():
    items, people, answers, _ = crowd(60)
    order = np.random.default_rng(1).permutation(len(items))
    names = {0: "f", 1: "e", 2: "d", 3: "c", 4: "b", 5: "a"}
    for model in (dawid_skene, competence_model):
        first = model(items, people, answers)
        again = model([f"i{items[n]}" for n in order], [names[people[n]] for n in order], [answers[n] for n in order])
        assert [one.error_rate for one in first.annotators] == pytest.approx(
            [one.error_rate for one in reversed(again.annotators)], abs=1e-8
        )


@pytest.mark.parametrize("model", [dawid_skene, competence_model])
@pytest.mark.parametrize(
    ("items", "people", "answers", "status"),
    [
        ([], [], [], "no_data"),
        ([1, 2], ["a", "b"], ["x", "y"], "no_data"),
        ([1, 1, 1], ["a", "b", "c"], ["x", "x", "x"], "not_applicable"),
        ([1, 1, 2, 2], ["a", "b"] * 2, ["x", "y", "x", "x"], "not_identified"),
    ],
)
def test_answers_that_identify_nothing_have_a_reason_and_no_number(model, items, people, answers, status):
    found = model(items, people, answers)
    assert (found.status, found.annotators, found.shares) == (status, (), ()) and found.reason


def test_items_of_one_annotator_alone_are_left_out():
    items, people, answers = [1, 1, 1, 2, 2, 2, 3], ["a", "b", "c", "a", "b", "c", "a"], list("xxyyyyx")
    found = dawid_skene(items, people, answers)
    assert (found.n_items, found.n_answers, found.annotators[0].n) == (2, 6, 2)


def test_wrong_lengths_and_negative_counts_are_refused():
    for model in (dawid_skene, competence_model):
        with pytest.raises(ValueError, match="lengths 1, 2, 1 differ"):
            model([1], ["a", "b"], ["x"])
        with pytest.raises(ValueError, match="pseudo_count"):
            model([1], ["a"], ["x"], pseudo_count=-1)
    with pytest.raises(ValueError, match="lengths"):
        severity([1], ["a", "b"], [0.5])


def test_severity_agrees_with_scipy_and_finds_a_shift():
    from scipy import stats

    rng = np.random.default_rng(2)
    quality, shift = rng.normal(0.5, 0.1, 200), np.array([-0.1, 0.0, 0.05])
    items = [i for i in range(200) for _ in shift]
    people = [k for _ in quality for k in "abc"]
    ratings = (quality[:, None] + shift + rng.normal(0, 0.05, (200, 3))).ravel()
    found = severity(items, people, ratings)
    table = ratings.reshape(200, 3)
    for k, one in enumerate(found):
        difference = table[:, k] - np.delete(table, k, axis=1).mean(axis=1)
        interval = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
        assert (one.estimate, one.standard_error) == pytest.approx(
            (difference.mean(), stats.sem(difference)), abs=1e-12
        )
        assert (one.interval.low, one.interval.high) == pytest.approx(tuple(interval), abs=1e-12)
        true = shift[k] - np.delete(shift, k).mean()
        assert one.interval.low < true < one.interval.high


def test_severity_without_spread_or_with_one_item_has_no_standard_error():
    one, other = severity([1, 1], ["a", "b"], [0.2, 0.4])
    assert (one.estimate, one.interval, one.reason) == (pytest.approx(-0.2), None, "one item has no standard error")
    assert other.n == 1
    for one in severity([1, 1, 2, 2], ["a", "b"] * 2, [0.2, 0.4, 0.5, 0.7]):
        assert one.standard_error is None and one.reason == "all differences are equal"
    assert severity([1, 2], ["a", "b"], [0.2, 0.4]) == () == severity([1], ["a"], [None])
    # Two ratings of an item by one person count once, with their mean.
    assert severity([1, 1, 1], ["a", "a", "b"], [0.2, 0.4, 0.5])[1].estimate == pytest.approx(0.2)
