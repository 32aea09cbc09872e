"""Decisions about answers: exclusions, places opened again or released, assignments found."""

import pytest

from annotators.models import Assignment, Exclusion
from annotators.places import assign
from annotators.places.exclusions import (
    annotate_is_excluded,
    create_exclusion_reversal,
    exclude_assignments,
    open_replacement_batches,
    release_place,
)
from annotators.places.places import compute_receipt
from studies.models import AuditEvent, Batch, Placement, Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused
from tests import builders, players
from tests.admin_pages import errors_of, form_of, logged_in
from tests.annotators.admin.collecting.watched import detail

pytestmark = pytest.mark.django_db


def test_an_exclusion_is_a_row_and_is_taken_back_once(study, owner):
    done = players.submitted(study, "1")
    (made,) = exclude_assignments([done], "copied_text", owner, "Two answers from the web.")
    assert annotate_is_excluded(Assignment.objects.filter(pk=done.pk)).get().is_excluded
    assert exclude_assignments([done], "too_fast", owner) == []  # once is enough
    create_exclusion_reversal(made, owner, "It was a quotation.")
    assert not annotate_is_excluded(Assignment.objects.filter(pk=done.pk)).get().is_excluded
    with pytest.raises(ActionRefused, match="already"):
        create_exclusion_reversal(made, owner)
    exclude_assignments([done], "too_fast", owner)
    assert Exclusion.objects.count() == 3
    verbs = AuditEvent.objects.filter(assignment_code=done.code).order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["exclude", "reverse exclusion", "exclude"]


@pytest.mark.parametrize("reason", ["", "because", "other"])
def test_an_exclusion_needs_a_reason(study, owner, reason):
    with pytest.raises(ActionRefused):
        exclude_assignments([players.submitted(study, "1")], reason, owner, " ")
    assert not Exclusion.objects.exists()


def test_only_submitted_assignments_of_one_study_are_excluded_all_or_none(study, owner):
    done, live = players.submitted(study, "1"), players.claimed(study, "2")
    with pytest.raises(ActionRefused, match="not submitted"):
        exclude_assignments([done, live], "too_fast", owner)
    other = players.submitted(builders.spa_study(owner, with_rating=False), "9")
    with pytest.raises(ActionRefused, match="one study"):
        exclude_assignments([done, other], "too_fast", owner)
    assert not Exclusion.objects.exists()


def test_a_place_is_opened_again_as_a_copy_that_can_be_claimed(study, owner):
    everybody = [players.submitted(study, str(n)) for n in range(4)]
    assert assign.claim_batch(study, assign.get_or_create_annotator("panel", "late")).outcome == "full"
    exclude_assignments(everybody[:2], "too_fast", owner, should_reopen_places=True)
    copies = list(study.batches.filter(origin="replacement").order_by("number"))
    assert [(one.wanted, one.number) for one in copies] == [(1, 4), (1, 5)]
    study.refresh_from_db()
    assert study.open_to == 6
    for copy, one in zip(copies, everybody, strict=False):
        assert copy.copy_of_id == one.batch_id

        def items(batch):
            return list(Placement.objects.filter(batch=batch).order_by("number").values_list("item", "number"))

        assert items(copy) == items(one.batch)
    assert players.claimed(study, "new").batch in copies


def test_no_place_is_opened_above_the_cap_and_nothing_is_excluded_then(study, owner):
    everybody = [players.submitted(study, str(n)) for n in range(4)]
    exclude_assignments(everybody[:2], "too_fast", owner, should_reopen_places=True)  # 4 + 2 = the cap of 6
    with pytest.raises(ActionRefused, match="capped at 6"):
        exclude_assignments(everybody[2:3], "too_fast", owner, should_reopen_places=True)
    assert Exclusion.objects.count() == 2 and Batch.objects.count() == 6


def test_a_batch_that_waits_is_opened_before_a_copy_is_made(study, owner):
    # As where more ready-made batches lie than the target opened.
    Study.objects.filter(pk=study.pk).update(open_to=2)
    done = [players.submitted(study, str(n)) for n in range(2)]
    exclude_assignments(done[:1], "too_fast", owner, should_reopen_places=True)
    study.refresh_from_db()
    assert study.open_to == 3 and not study.batches.filter(origin="replacement").exists()


def test_places_of_a_closed_study_are_not_opened(study, owner):
    done = players.submitted(study, "1")
    lifecycle.start_closing(study, by=None)
    with pytest.raises(ActionRefused, match="launched or paused"):
        open_replacement_batches(study, [done], owner)
    assert exclude_assignments([done], "too_fast", owner)  # leaving out is possible for ever


def test_a_place_is_released_and_its_person_may_come_back(study, owner):
    live = players.claimed(study, "1")
    release_place(live, owner)
    live.refresh_from_db()
    assert (live.released_reason, live.batch.claimed) == ("returned", 1 - 1)
    assert players.claimed(study, "1").pk == live.pk
    with pytest.raises(ActionRefused):
        release_place(players.submitted(study, "2"), owner)


def test_many_are_excluded_from_the_list(client, study):
    done = [players.submitted(study, str(n)) for n in range(3)]
    url = f"/admin/annotators/assignment/?study={study.pk}"
    asked = client.post(url, {"action": "render_exclusion_form", "_selected_action": [one.pk for one in done[:2]]})
    data = form_of(asked, number=-1)
    assert set(data["code"]) == {done[0].code, done[1].code}
    refused = client.post("/admin/annotators/assignment/exclude/", data)
    assert refused.status_code == 422 and "required" in errors_of(refused)
    client.post("/admin/annotators/assignment/exclude/", data | {"reason": ["misunderstood"], "reopen": ["on"]})
    assert Exclusion.objects.count() == 2 and study.batches.filter(origin="replacement").count() == 2
    html = client.get(f"{url}&state=excluded").content.decode()
    assert done[0].code[:8] in html and done[2].code[:8] not in html


def test_an_assignment_is_found_by_its_code_and_shown_in_detail(client, study):
    done = players.submitted(study, "1", comment="All fine.")
    players.submitted(study, "2")
    html = client.get(f"/admin/annotators/assignment/?q={done.code[:8]}").content.decode()
    assert "1 result" in html
    html = client.get(detail(done)).content.decode()
    for words in ("Section 2, reading", "All fine.", "Do you read English fluently?", "submitted"):
        assert words in html


def test_an_assignment_is_found_by_the_receipt_that_its_person_names(client, study):
    done, other = players.submitted(study, "1"), players.submitted(study, "2")
    receipt = compute_receipt(done.code)
    for typed in (receipt, f" {receipt.lower()} ", receipt.replace("-", "")):
        html = client.get("/admin/annotators/assignment/", {"q": typed}).content.decode()
        assert "1 result" in html and done.code[:8] in html and other.code[:8] not in html
    assert "0 results" in client.get("/admin/annotators/assignment/", {"q": receipt[:-1]}).content.decode()
    assert f"<dt>Receipt</dt><dd>{receipt}</dd>" in client.get(detail(done)).content.decode()
    stranger = logged_in(builders.user("stranger"))
    assert done.code[:8] not in stranger.get("/admin/annotators/assignment/", {"q": receipt}).content.decode()


def test_an_exclusion_is_taken_back_on_the_page(client, study, owner):
    done = players.submitted(study, "1")
    (made,) = exclude_assignments([done], "too_fast", owner)
    html = client.get(detail(done)).content.decode()
    assert "excluded from the analysis" in html and "Take back the exclusion" in html
    client.post(f"/admin/annotators/assignment/exclusion/{made.pk}/reverse/", {"note": "No."})
    assert "Taken back" in client.get(detail(done)).content.decode()
    response = client.post(f"/admin/annotators/assignment/exclusion/{made.pk}/reverse/", {"note": "No."}, follow=True)
    assert "already" in errors_of(response)
    assert client.post("/admin/annotators/assignment/exclusion/99999/reverse/").status_code == 404


@pytest.mark.parametrize("codes", [[], ["%00"], ["nonsense"], ["a" * 5000]])
def test_codes_of_nobody_are_refused_with_words(client, study, codes):
    response = client.post("/admin/annotators/assignment/exclude/", {"code": codes, "reason": "too_fast"}, follow=True)
    assert response.status_code == 200 and "Choose at least one assignment" in errors_of(response)
