"""Every count of people that a researcher reads, counted once more by loops over raw rows.

What counts as what follows the words of the documentation, not the code.
"""

import csv
import io
import json
from collections import Counter

import pytest
from django.urls import reverse

from analysis.data.flat_rows import assignment_pseudonym
from annotators.models import (
    Assignment,
    PanelSubmission,
    Response,
)
from studies.admin import workflow
from studies.design.workload import estimate_stored_or_trial_batch_workloads
from studies.models import Batch, Study
from studies.services import lifecycle
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.annotators.pay.recount.rows import counted_by_hand, finished, holding, in_time, left_out, live
from tests.builders import user
from tests.study_command import exported

pytestmark = pytest.mark.django_db


def as_dict(places) -> dict:
    names = ("wanted", "free", "reserved", "started", "submitted", "excluded", "replaced", "late")
    return {name: getattr(places, name) for name in names} | {"released": dict(places.released)}


@pytest.mark.slow
def test_people_are_counted_alike_wherever_they_are_counted(world):
    study, client, api = world[0], logged_in(user("owner")), api_of(user("owner"))
    page = client.get(f"/admin/studies/study/{study.pk}/collecting/")
    by_hand = counted_by_hand(study)
    assert as_dict(page.context["total"]) == by_hand
    arms = {arm.name: counted_by_hand(study, arm) for arm in study.arms.all()}
    assert {row.name: as_dict(row) for row in page.context["arms"]} == arms and len(arms) == 2
    # There is somebody in every cell, or this shows nothing.
    assert all(by_hand.values()) and len(by_hand["released"]) == 5, by_hand
    # Of the target: kept so far. One whom the cap or a pause would not let be replaced is not one of these.
    kept = [one for one in in_time(live(study)) if not one.replaced_at]
    progress = api.get(f"studies/{study.code}/progress/").json()
    shown = next(one for one in client.get("/admin/studies/study/").context["cl"].result_list if one.pk == study.pk)
    assert (
        page.context["counted"]
        == progress["counted"]
        == shown.shown_progress.submitted
        == len(kept)
        == by_hand["submitted"] - 4
    )
    robots = [one for one in Assignment.objects.all() if one.origin == "robot"]
    assert page.context["robots"] == shown.shown_progress.robots == len(finished(robots)) == 1
    assert page.context["total"].held_by_robots == len(holding(robots)) == 2 and shown.shown_progress.imported == 1
    assert progress | {"state": "", "target_n": 0, "counted": 0} == {
        "state": "",
        "target_n": 0,
        "counted": 0,
        "steps": [],
        "places": by_hand["wanted"],
        "free": by_hand["free"],
        "claimed": len(holding(live(study))),
        "started": by_hand["started"] + by_hand["submitted"],
        "submitted": by_hand["submitted"],
        "released": sum(by_hand["released"].values()),
        "late": by_hand["late"],
        "withdrawn": sum(bool(one.withdrawn_at) for one in live(study)),
        "test": None,
    }
    # The list of assignments, by its filters: of all origins, as its column of origins says.
    everybody = list(Assignment.objects.filter(study=study))
    wanted = {
        "reserved": [one for one in holding(everybody) if not one.submitted_at],
        "submitted": finished(holding(everybody)),
        "late": [one for one in everybody if one.is_late],
        "released": [one for one in everybody if one.released_at],
        "withdrawn": [one for one in everybody if one.withdrawn_at],
        "excluded": left_out(everybody),
    }
    for state, rows in wanted.items():
        found = client.get(f"/admin/annotators/assignment/?study={study.pk}&state={state}").context["cl"]
        assert {one.pk for one in found.result_list} == {one.pk for one in rows} and found.result_count == len(
            rows
        ) > 0, state


def test_a_clone_and_a_study_of_nobody_count_nothing(world):
    client, copy = logged_in(user("owner")), Study.objects.get(clone_of=world[0])
    page = client.get(f"/admin/studies/study/{copy.pk}/collecting/")
    assert not any(value for value in as_dict(page.context["total"]).values()) and page.context["counted"] == 0
    progress = api_of(user("owner")).get(f"studies/{copy.code}/progress/").json()
    assert not any(n for name, n in progress.items() if name not in ("state", "target_n"))
    assert "no submissions yet" in page.content.decode() and "Pay per hour, median" not in page.content.decode()


@pytest.mark.slow
def test_what_a_panel_shows_is_stored_as_its_table_says(world):
    """By the table of "Settle with a panel", of everybody whom the panel shows."""
    panel, client = world[1], logged_in(user("owner"))
    found = Counter()
    for row in PanelSubmission.objects.all():
        one = row.assignment
        if row.state in ("approved", "rejected"):
            found["approved or rejected"] += 1
        elif row.state == "submitted" and one is None:
            found["submitted at the panel, unknown in heval"] += 1
        elif row.state == "submitted" and one.submitted_at:
            found["finished at both"] += 1
        else:
            found["returned or expired"] += 1
    told = client.get(f"/admin/annotators/recruitment/{panel.pk}/panel/").context
    assert {what: n for n, what, _, _ in told["classes"]} == found and len(found) == 4
    assert told["matched"] == len(told["matched_rows"]) == found["finished at both"] == told["to_approve"]
    assert [words[0] for _, words, _, _, _ in told["people"]] == ["submitted at the panel, unknown in heval"]


def test_the_form_of_a_report_counts_whom_a_report_counts(world):
    study, client = world[0], logged_in(user("owner"))
    page = client.get(reverse("analyses", args=[study.pk]))
    stayed = Counter(one.origin for one in Assignment.objects.all() if one.submitted_at and not one.withdrawn_at)
    assert {box.data["value"]: n for box, n in page.context["origins"]} == stayed
    assert f"{stayed['live']} submitted, without withdrawals" in page.content.decode()


def test_what_batches_ask_is_read_off_their_placements(world):
    """Words of every text that is shown, and of each prompt once; a quarter of a minute an answer; the arm's own pay."""
    study = world[0]
    found = {}
    for batch in Batch.objects.filter(study=study):
        items = [row.item for row in batch.placements.all()]
        texts = [one.output.text for item in items for one in item.exposures.all()]
        prompts = {item.prompt for item in items}
        words = sum(
            len(text.split()) for text in [*texts, *(text for one in prompts for text in (one.text, one.source))]
        )
        if words:
            minutes = (
                words / study.words_per_minute + 4 / 4
            )  # one screening question, one pair asked both ways, one comment
            reward = batch.arm.reward if batch.arm.reward is not None else study.reward
            found[str(batch.number)] = (words, 4, pytest.approx(minutes), pytest.approx(float(reward) * 60 / minutes))
    told = {
        one.batch: (one.words, one.questions, one.minutes, one.per_hour)
        for one in estimate_stored_or_trial_batch_workloads(study)
    }
    assert told == found and len(found) > 18
    loads = workflow.min_median_max_batch_burdens(study, estimate_stored_or_trial_batch_workloads(study))
    by_minutes = sorted(one.minutes for one in estimate_stored_or_trial_batch_workloads(study))
    assert [one.burden.minutes for one in loads] == [
        by_minutes[0],
        by_minutes[(len(by_minutes) - 1) // 2],
        by_minutes[-1],
    ]
    assert all(one.is_below_wage == (one.burden.per_hour < 12) for one in loads)


def test_exports_have_a_row_for_everybody_whom_they_name(world, tmp_path):
    study, api = world[0], api_of(user("owner"))
    study = Study.objects.get(pk=study.pk)
    lifecycle.unblind(study, user("owner"), "to look")
    for origins in (("live", "imported"), ("robot",)):
        for withdrawn in (False, True):
            stay = [
                one
                for one in Assignment.objects.filter(study=study).order_by("pk")
                if one.origin in origins and (withdrawn or not one.withdrawn_at)
            ]
            answers = [row for row in Response.objects.order_by("assignment_id", "pk") if row.assignment in stay]
            query = f"origins={','.join(origins)}&withdrawn={int(withdrawn)}"
            for table, mine in (
                ("assignments", [assignment_pseudonym(one.code) for one in stay]),
                ("responses", [assignment_pseudonym(row.assignment.code) for row in answers]),
            ):
                sent = api.get(f"studies/{study.code}/exports/{table}.csv?{query}")
                rows = list(csv.DictReader(io.StringIO(sent.body.decode())))
                lines = [
                    json.loads(line)
                    for line in api.get(f"studies/{study.code}/exports/{table}.jsonl?{query}").body.splitlines()
                ]
                assert [row["assignment"] for row in rows] == [row["assignment"] for row in lines[:-1]] == mine
                assert int(sent["X-Heval-Rows"]) == lines[-1]["rows"] == len(mine)
                options = ["--origins", ",".join(origins), *(["--withdrawn"] if withdrawn else [])]
                assert exported(study, f"{table}.csv", tmp_path, *options) == sent.body
                if table == "responses":
                    found, path = [], f"studies/{study.code}/responses/?{query}&page_size=50"
                    while path:
                        answer = api.get(path).json()
                        found += [row["assignment"] for row in answer["results"]]
                        path = answer["next"] and answer["next"].partition("/api/v1/")[2]
                    assert found == mine
    everybody = api.get(f"studies/{study.code}/assignments/?page_size=1000").json()["results"]
    assert [row["assignment"] for row in everybody] == [
        assignment_pseudonym(one.code) for one in Assignment.objects.filter(study=study).order_by("pk")
    ]
    by_hand = {assignment_pseudonym(one.code) for one in left_out(live(study))}
    assert {row["assignment"] for row in everybody if row["exclusion"]} == by_hand
    rest = api.get(f"studies/{study.code}/exclusions/").json()["results"]
    assert {row["assignment"] for row in rest if row["is_active"]} == by_hand and len(rest) == 5
