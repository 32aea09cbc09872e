"""The page of labelling strategies, with the planning results of the paper on dynamic evaluation."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from analysis.planning import strategies
from annotators.models import Response
from studies.models import Job, Study
from studies.services import jobs, lifecycle
from tests.analysis.api.rest import api_of
from tests.analysis.planning.quick import words
from tests.builders import add_choice, choice_study, draft_study, spa_study, user
from tests.players import many, submitted

pytestmark = pytest.mark.django_db

PAPER = {
    "shares": "61.25",
    "items": "1500",
    "spread": "0.316",
    "lowest_capability": "0.8",
    "highest_capability": "1",
    "rule": "hoeffding",
    "confidence": "99.9",
    "reading": "stays",
    "runs": "100",
    "draws": "new",
    "price": "0.02",
}


@pytest.fixture
def page(client):
    owner = user("owner")
    study = draft_study(owner=owner)
    add_choice(study)
    client.force_login(owner)
    return study, reverse("admin:studies_plan_strategies", args=[study.pk])


def test_the_papers_table_comes_from_the_page(page, client):
    study, url = page
    response = client.post(url, PAPER)
    assert response.status_code == 302
    jobs.run_waiting_jobs()
    result = study.jobs.get(kind=strategies.StrategiesForm.kind, state=Job.State.DONE).result
    labels = {row["strategy"]: row["labels"] for row in result["plans"][0]["rows"]}
    # Table 3 at difficulty .25 has 338, 344, 461, 722 and 866 for one draw of items; other draws give 533 to 1,064 for the last.
    assert list(labels) == ["one", "fixed", "max_three", "majority_5", "majority_7"]
    assert 280 < labels["one"] < 400 and 360 < labels["max_three"] < 500 and 640 < labels["majority_7"] < 940
    assert result["plans"][0]["mean_difficulty"] == pytest.approx(0.25)
    said = words(client.get(url))
    assert (
        "Majority of seven annotators" in said
        and "The cheapest strategy with 61.25 % of answers for x: " in said
        and "99.9" in client.get(url).content.decode()
    )


# Table 3: share for x, and the published answers of the strategies in the order of the page. Its decisions are all made by 15,000 items.
TABLE_3 = {
    61.25: (338, 344, 461, 722, 866),
    55.625: (1440, 1454, 2011, 3141, 3647),
    52.8125: (4491, 4526, 6729, 10850, 13302),
}


@pytest.mark.slow
def test_table_3_lies_in_the_spread_of_draws_in_one_run():
    shares = " ".join(map(str, TABLE_3))
    form = strategies.StrategiesForm(
        PAPER | {"shares": shares, "items": "15000", "runs": "1000", "draws": "one"}, user=AnonymousUser()
    )
    assert form.is_valid(), form.errors
    plans = strategies.compute_strategies(form.cleaned_data, 0, lambda *done: None)["plans"]
    assert [plan["share"] for plan in plans] == list(TABLE_3)
    inside = 0
    for plan in plans:
        for row, published in zip(plan["rows"], TABLE_3[plan["share"]], strict=True):
            inside += row["draws_low"] < published < row["draws_high"]
            # The interval of one draw is far narrower than the spread of draws, as the published one is.
            assert row["runs"] == 1000 and row["labels_low"] < row["labels"] < row["labels_high"]
            assert row["labels_high"] - row["labels_low"] < 0.3 * (row["draws_high"] - row["draws_low"])
    # The published draw is one more draw, so 90 % of its means are expected inside.
    assert inside >= 13


def test_one_draw_of_annotators_and_items_is_shown_with_other_draws(page, client):
    study, url = page
    client.post(url, PAPER | {"shares": "70, 61.125", "items": "300", "draws": "one"})
    jobs.run_waiting_jobs()
    easy, hard = study.jobs.get(kind=strategies.StrategiesForm.kind, state=Job.State.DONE).result["plans"]
    for quick, slow in zip(easy["rows"], hard["rows"], strict=True):
        assert quick["labels"] < slow["labels"] and quick["draws_low"] < quick["draws_high"]
        assert quick["wrong_without_difference"] == slow["wrong_without_difference"]
    said = words(client.get(url))
    assert all(text in said for text in ("90 % of other draws", "61.125 % of answers for x", "99 % interval"))
    assert 'value="70 61.125"' in client.get(url).content.decode()


def test_studies_that_all_pay_the_same_have_no_interval(page, client):
    study, url = page
    client.post(url, PAPER | {"shares": "50", "items": "10", "rule": "beta_binomial"})
    jobs.run_waiting_jobs()
    (plan,) = study.jobs.get(kind=strategies.StrategiesForm.kind, state=Job.State.DONE).result["plans"]
    assert plan["rows"][0]["labels"] == 10 and plan["rows"][0]["labels_low"] is None
    assert "none: all alike" in words(client.get(url))


def labels_of(share, items, lowest, runs) -> dict[str, float]:
    """The mean answers of each strategy with the settings of the page. The three difficulties are 61.25, 55.625 and 52.8125 % in Table 3."""
    sent = PAPER | {"shares": share, "items": items, "lowest_capability": lowest}
    form = strategies.StrategiesForm(sent, user=AnonymousUser())
    assert form.is_valid(), form.errors
    options = form.cleaned_data | {"runs": runs}
    rows = strategies.compute_strategies(options, 1, lambda *done: None)["plans"][0]["rows"]
    assert all(row["right"] > 0.97 and row["wrong_without_difference"] < 0.02 for row in rows)
    return {row["strategy"]: row["labels"] for row in rows}


# Table 8 of the supplement: annotators with a capability of .5 or more. Share for x and most items: published answers, and by how much
# other draws of items differ. The paper holds one draw fixed; in Table 3 other draws have a standard deviation of 17, 14 and 26 %.
TABLE_8 = {
    ("59.375", "3000"): (508, 550, 604, 897, 1051),
    ("54.6875", "8000"): (1913, 2129, 2560, 3885, 4468),
    ("52.34375", "20000"): (6563, 7025, 8374, 12750, 15542),
}


@pytest.mark.parametrize(
    "settings", [next(iter(TABLE_8)), *(pytest.param(one, marks=pytest.mark.slow) for one in [*TABLE_8][1:])]
)
def test_table_8_of_the_supplement_comes_from_the_pages_settings(settings):
    found = labels_of(*settings, "0.5", 60)
    for (name, labels), published in zip(found.items(), TABLE_8[settings], strict=True):
        assert labels == pytest.approx(published, rel=0.3), name
    in_order = [found[name] for name in ("one", "max_three", "majority_5", "majority_7")]
    assert in_order == sorted(in_order)


def test_figure_1_comes_from_the_pages_settings():
    """The lower bound passes 50 % after about three times as many answers if the difficulty is half as far from 0."""
    easy = labels_of("55.625", "6000", "0.8", 40)["one"]
    hard = labels_of("52.8125", "20000", "0.8", 40)["one"]
    assert 1100 < easy < 1800 and 2.5 < hard / easy < 4.5


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lowest_capability": "1", "highest_capability": "0.5"}, "below the lowest capability"),
        ({"lowest_capability": "0", "highest_capability": "0"}, "capability 0 decide nothing"),
        ({"shares": "60 99", "lowest_capability": "0.5"}, "cannot agree so often"),
        ({"shares": "61 many"}, "'many' is not a number from 50 to 99"),
        ({"shares": "51 52 53 54 55 56"}, "There are 6 shares"),
        ({"shares": "nan"}, "is not a number from 50 to 99"),
        ({"items": "1000000"}, "less than or equal to 20000"),
        ({"confidence": "100"}, "less than or equal to 99.9999"),
    ],
)
def test_impossible_strategies_say_what_to_change(page, client, changed, message):
    study, url = page
    response = client.post(url, PAPER | changed)
    assert response.status_code == 422 and message in words(response) and not study.jobs.exists()


def test_rest_starts_the_job_once_for_a_key_with_the_first_values_of_the_form(page):
    study, _ = page
    client = api_of(study.owner)
    where, body = (
        f"studies/{study.code}/plans/strategies/",
        {"shares": [70, 65], "items": 200, "runs": 100, "spread": 0.25},
    )
    first, second = (client.send("POST", where, body, **{"Idempotency-Key": "one"}) for _ in range(2))
    assert first.status_code == 202 and first.json()["code"] == second.json()["code"]
    jobs.run_waiting_jobs()
    result = client.get(f"studies/{study.code}/jobs/{first.json()['code']}/").json()["result"]
    assert [plan["share"] for plan in result["plans"]] == [70, 65]
    assert (
        result["options"]["spread"] == 0.25
        and result["options"]["rule"] == "beta_binomial"
        and result["plans"][0]["rows"][0]["runs"] == 100
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"shares": []}, "shares"),
        ({"shares": [61, 20]}, "shares"),
        ({"runs": 1}, "runs"),
        ({"rule": "bayes"}, "rule"),
        ({"draw": "one"}, "draw"),
        ({"price": "much"}, "price"),
    ],
)
def test_rest_names_the_field_that_is_wrong(page, body, field):
    study, _ = page
    response = api_of(study.owner).send("POST", f"studies/{study.code}/plans/strategies/", body)
    assert response.status_code == 400 and field in {
        one["field"].partition(" ")[0] for one in response.json()["errors"]
    }
    assert not study.jobs.exists()


def test_who_may_only_read_sees_no_form(page, client):
    study, url = page
    reader = user("reader")
    study.members.create(user=reader, role="viewer")
    client.force_login(reader)
    assert "Simulate the strategies" not in words(client.get(url))
    client.post(url, PAPER)
    assert not study.jobs.exists()


@pytest.fixture
def pilot(page):
    """A closed study of two choices in which each of 30 items has three answers, 80 % of them for beta."""
    settings = {"strategy": "majority", "workers": 3, "stopping": "none"}
    columns = {"by": page[0].owner, "annotators_per_batch": 3, "settings": settings}
    study = choice_study(prompts=30, m=10, target_n=9, **columns)
    many(study, 9, 0.8)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


def test_share_and_spread_come_from_a_pilot(page, pilot, client):
    study, url = page
    assert f'<option value="{pilot.code}">' in client.get(url).content.decode()
    # What was typed is not used, also if it would be refused.
    response = client.post(url, PAPER | {"pilot": str(pilot.code), "shares": "99", "spread": "0.9", "items": "300"})
    assert response.status_code == 302
    jobs.run_waiting_jobs()
    result = study.jobs.get(kind=strategies.StrategiesForm.kind, state=Job.State.DONE).result
    found = result["pilot"]
    assert (found["n_answers"], found["n_people"], found["n_items"]) == (90, 9, 30) and found["code"] == str(pilot.code)
    chosen = Response.objects.filter(assignment__study=pilot, chosen__output__system__name="beta").count()
    assert found["share"] == pytest.approx(chosen / 90) and found["low"] < found["share"] < found["high"]
    assert [plan["share"] for plan in result["plans"]] == [round(100 * found[name], 2) for name in ("share", "low")]
    assert result["options"]["spread"] == pytest.approx(2 * found["spread"] / 0.9, abs=5e-5)
    sure, careful = (plan["rows"][0]["labels"] for plan in result["plans"])
    assert sure < careful
    said = words(client.get(url))
    assert f"{100 * chosen / 90:.1f} % of 90 answers of 9 annotators about 30 items" in said
    assert "Plan for the second share" in said


def test_rest_plans_from_a_pilot_as_the_page_does(page, pilot):
    study, _ = page
    client = api_of(study.owner)
    body = {"pilot": str(pilot.code), "items": 200, "runs": 100}
    sent = client.send("POST", f"studies/{study.code}/plans/strategies/", body)
    assert sent.status_code == 202
    jobs.run_waiting_jobs()
    result = client.get(f"studies/{study.code}/jobs/{sent.json()['code']}/").json()["result"]
    assert result["pilot"]["n_answers"] == 90 and len(result["plans"]) == 2


@pytest.mark.parametrize(
    ("is_spa", "is_closed", "message"),
    [(True, True, "has no two choices"), (False, False, "still hidden"), (None, True, "no study with this code")],
)
def test_a_pilot_that_cannot_be_used_says_why(page, client, is_spa, is_closed, message):
    study, url = page
    other = spa_study(study.owner) if is_spa else choice_study(by=study.owner)
    many(other, 1, 0.5) if not is_spa else submitted(other)
    if is_closed:
        lifecycle.start_closing(other, by=None)
        lifecycle.end_grace_period(Study.objects.get(pk=other.pk), by=None)
    code = "nothing" if is_spa is None else str(other.code)
    response = client.post(url, PAPER | {"pilot": code})
    assert response.status_code == 422 and message in words(response) and not study.jobs.exists()


def test_a_pilot_with_one_answer_for_each_item_says_what_it_lacks(page, client):
    study, url = page
    other = choice_study(by=study.owner, prompts=30, m=5, target_n=6, settings={"stopping": "none"})
    many(other, 6, 0.8)
    lifecycle.start_closing(other, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=other.pk), by=None)
    client.post(url, PAPER | {"pilot": str(other.code)})
    jobs.run_waiting_jobs()
    job = study.jobs.get(kind=strategies.StrategiesForm.kind)
    assert job.state == Job.State.FAILED and "each prompt has one answer" in job.error
