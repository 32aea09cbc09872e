"""Watching and deciding: counts, times, the inbox, exclusions, replacements, links."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from annotators.models import Assignment, Exclusion, Inquiry, PageVisit, Recruitment
from annotators.pages.sequence import page_words
from annotators.places import assign, monitor
from annotators.places.exclude import exclude, release_place, reopen_places, reverse_exclusion, with_exclusion
from annotators.places.receipts import receipt_of
from studies.models import AuditEvent, Batch, Placement, Study
from studies.services import lifecycle
from studies.services.lifecycle import NotNow
from tests import builders, players
from tests.admin_pages import changed, errors_of, form_of, logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_study(owner, with_rating=False, target_n=4)


def collecting(client, study):
    return client.get(f"/admin/annotators/inquiry/study/{study.pk}/collecting/")


def detail(assignment):
    return f"/admin/annotators/assignment/{assignment.pk}/change/"


# Counts


def test_places_are_counted_by_where_they_stand(study):
    players.submitted(study, "1")
    assign.begin(players.submitted(study, "2", until="s2.ask"))
    looking = players.claimed(study, "3")
    gone = players.claimed(study, "4")
    assign.release(gone.pk, "returned")
    total, arms = monitor.places(study)
    assert (total.wanted, total.submitted, total.started, total.reserved, total.free) == (4, 1, 1, 1, 1)
    # As everywhere: started is who was shown the first page.
    assign.begin(looking)
    assert (monitor.places(study)[0].started, monitor.places(study)[0].reserved) == (2, 0)
    assert total.released == (("returned", 1),)
    assert [(arm.name, arm.submitted, arm.free) for arm in arms] == [("all", 1, 1)]


def test_minutes_and_pay_are_medians_of_those_who_submitted(client, study):
    for n, minutes in enumerate((5, 10, 60)):
        done = players.submitted(study, str(n))
        Assignment.objects.filter(pk=done.pk).update(started_at=done.submitted_at - timedelta(minutes=minutes))
        visit = PageVisit.objects.filter(assignment=done).first()
        PageVisit.objects.filter(pk=visit.pk).update(active_seconds=60 * minutes)
    pace = monitor.pace(study)
    assert (pace.n, pace.minutes, pace.active_minutes) == (3, 10, 10)
    page = " ".join(collecting(client, study).content.decode().split())
    assert "<dt>Pay an hour, median</dt><dd>15.00 USD, by the time at work, bonuses with it</dd>" in page


def test_days_count_arrivals_and_submissions(study):
    players.submitted(study, "1")
    early = players.submitted(study, "2")
    Assignment.objects.filter(pk=early.pk).update(claimed_at=F("claimed_at") - timedelta(days=1))
    assert [(day.claimed, day.submitted) for day in monitor.days(study)] == [(1, 0), (1, 2)]


def test_tries_and_robots_are_not_counted(study):
    players.submitted(study, "1", origin="robot")
    assert monitor.places(study)[0].submitted == 0 and monitor.pace(study).n == 0
    assert monitor.progress_of([study.pk]) == {study.pk: monitor.Progress(0, None, 1)}


def test_a_place_that_a_robot_holds_is_not_free_for_anybody(client, study):
    players.submitted(study, "1", origin="robot")
    players.claimed(study, "2", origin="robot")
    players.submitted(study, "3")
    total, (arm,) = monitor.places(study)
    for row in (total, arm):
        assert (row.wanted, row.free, row.submitted, row.held_by_robots) == (4, 1, 1, 2)
    page = collecting(client, study).content.decode()
    assert "1 robot answered too; robots are not counted here, and hold 2 of the places." in page
    players.submitted(study, "4")
    # What the page calls free is what the door gives.
    assert monitor.places(study)[0].free == 0
    assert assign.claim_batch(study, assign.annotator_of("panel", "5")).outcome != "claimed"


def test_who_came_too_late_is_counted_as_late_and_as_nothing_else(client, study):
    late = players.submitted(study, "1")
    Assignment.objects.filter(pk=late.pk).update(released_at=F("submitted_at"), released_reason="expired", is_late=True)
    Batch.objects.filter(pk=late.batch_id).update(claimed=0)
    players.submitted(study, "2")
    total, _ = monitor.places(study)
    assert (total.submitted, total.late, total.free, total.released) == (1, 1, 3, (("expired", 1),))
    assert sum(day.submitted for day in monitor.days(study)) == total.submitted
    assert sum(day.claimed for day in monitor.days(study)) == 2
    page = collecting(client, study).content.decode()
    assert "<b>1</b> of 4" in page and "1 person<" in page and ">Took a place</th>" in page


def test_places_of_third_labels_do_not_make_the_cap_look_reached(client, owner):
    study = builders.choice_study(by=owner, m=1, target_n=4, target_cap=6, target_kind="kept")
    first = players.submitted(study, "1")
    exclude([first], "too_fast", owner, reopen=True)  # five places of six
    last = study.batches.order_by("number").last()
    Batch.objects.create(study=study, arm=last.arm, number=last.number + 1, wanted=1, origin="top_up")
    Study.objects.filter(pk=study.pk).update(open_to=last.number + 2)
    page = collecting(client, study).content.decode()
    assert "1 place was opened again for somebody else." in page and "The cap of" not in page
    exclude([players.submitted(study, "2")], "too_fast", owner, reopen=True)
    page = collecting(client, study).content.decode()
    assert "2 places were opened again for somebody else. The cap of 6 places is reached" in page


def test_the_page_shows_comments_and_says_why_outcomes_are_hidden(client, study):
    players.submitted(study, "1", comment="The third <b>text</b> was cut off.")
    html = collecting(client, study).content.decode()
    assert "The third &lt;b&gt;text&lt;/b&gt; was cut off." in html
    assert "Outcomes are hidden while the study collects" in html
    lifecycle.unblind(study, None, "why not")
    assert "Outcomes are shown since" in collecting(client, study).content.decode()


def test_no_page_about_annotators_names_a_system(client, study):
    done = players.submitted(study, "1", comment="Fine.")
    for url in (detail(done), f"/admin/annotators/assignment/?study={study.pk}"):
        html = client.get(url).content.decode()
        assert not any(name in html for name in builders.SYSTEMS), url
    assert not any(name in collecting(client, study).content.decode() for name in builders.SYSTEMS)


def test_queries_do_not_grow_with_people(client, study, owner):
    lifecycle.draw_more(study, 2, by=None)

    def queries(url):
        with CaptureQueriesContext(connection) as context:
            assert client.get(url).status_code == 200
        return len(context)

    urls = [
        f"/admin/annotators/inquiry/study/{study.pk}/collecting/", f"/admin/annotators/assignment/?study={study.pk}",
        "/admin/annotators/recruitment/",
    ]  # fmt: skip

    def one_more(n):
        done = players.submitted(study, str(n), recruitment=builders.panel(study), comment="words")
        Inquiry.objects.create(assignment=done, kind="question", text="Why?")
        exclude([done], "too_fast", owner)

    one_more(0)
    for url in urls:
        queries(url)
    few = [queries(url) for url in urls]
    for n in range(1, 5):
        one_more(n)
    assert [queries(url) for url in urls] == few


def test_an_inquiry_is_handled_and_not_handled_after_all(client, study):
    done = players.submitted(study, "1")
    inquiry = Inquiry.objects.create(assignment=done, kind="report", text="It stops in the middle.", label="B")
    assert "Inbox (1 waiting)" in collecting(client, study).content.decode()
    url = f"/admin/annotators/inquiry/study/{study.pk}/inbox/{inquiry.pk}/"
    client.post(url)
    assert "waiting)" not in collecting(client, study).content.decode()
    client.post(url, {"again": "1"})
    inquiry.refresh_from_db()
    assert inquiry.handled_at is None
    assert client.get(url).status_code == 405


# Decisions


def test_an_exclusion_is_a_row_and_is_taken_back_once(study, owner):
    done = players.submitted(study, "1")
    (made,) = exclude([done], "copied_text", owner, "Two answers from the web.")
    assert with_exclusion(Assignment.objects.filter(pk=done.pk)).get().is_excluded
    assert exclude([done], "too_fast", owner) == []  # once is enough
    reverse_exclusion(made, owner, "It was a quotation.")
    assert not with_exclusion(Assignment.objects.filter(pk=done.pk)).get().is_excluded
    with pytest.raises(NotNow, match="already"):
        reverse_exclusion(made, owner)
    exclude([done], "too_fast", owner)
    assert Exclusion.objects.count() == 3
    verbs = AuditEvent.objects.filter(assignment_code=done.code).order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["exclude", "reverse exclusion", "exclude"]


@pytest.mark.parametrize("reason", ["", "because", "other"])
def test_an_exclusion_needs_a_reason(study, owner, reason):
    with pytest.raises(NotNow):
        exclude([players.submitted(study, "1")], reason, owner, " ")
    assert not Exclusion.objects.exists()


def test_only_submitted_assignments_of_one_study_are_excluded_all_or_none(study, owner):
    done, live = players.submitted(study, "1"), players.claimed(study, "2")
    with pytest.raises(NotNow, match="not submitted"):
        exclude([done, live], "too_fast", owner)
    other = players.submitted(builders.spa_study(owner, with_rating=False), "9")
    with pytest.raises(NotNow, match="one study"):
        exclude([done, other], "too_fast", owner)
    assert not Exclusion.objects.exists()


def test_a_place_is_opened_again_as_a_copy_that_can_be_claimed(study, owner):
    everybody = [players.submitted(study, str(n)) for n in range(4)]
    assert assign.claim_batch(study, assign.annotator_of("panel", "late")).outcome == "full"
    exclude(everybody[:2], "too_fast", owner, reopen=True)
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
    exclude(everybody[:2], "too_fast", owner, reopen=True)  # 4 + 2 = the cap of 6
    with pytest.raises(NotNow, match="capped at 6"):
        exclude(everybody[2:3], "too_fast", owner, reopen=True)
    assert Exclusion.objects.count() == 2 and Batch.objects.count() == 6


def test_a_batch_that_waits_is_opened_before_a_copy_is_made(study, owner):
    # As where more ready-made batches lie than the target opened.
    Study.objects.filter(pk=study.pk).update(open_to=2)
    done = [players.submitted(study, str(n)) for n in range(2)]
    exclude(done[:1], "too_fast", owner, reopen=True)
    study.refresh_from_db()
    assert study.open_to == 3 and not study.batches.filter(origin="replacement").exists()


def test_places_of_a_closed_study_are_not_opened(study, owner):
    done = players.submitted(study, "1")
    lifecycle.close(study, by=None)
    with pytest.raises(NotNow, match="launched or paused"):
        reopen_places(study, [done], owner)
    assert exclude([done], "too_fast", owner)  # leaving out is possible for ever


def test_a_place_is_released_and_its_person_may_come_back(study, owner):
    live = players.claimed(study, "1")
    release_place(live, owner)
    live.refresh_from_db()
    assert (live.released_reason, live.batch.claimed) == ("returned", 1 - 1)
    assert players.claimed(study, "1").pk == live.pk
    with pytest.raises(NotNow):
        release_place(players.submitted(study, "2"), owner)


def test_many_are_excluded_from_the_list(client, study):
    done = [players.submitted(study, str(n)) for n in range(3)]
    url = f"/admin/annotators/assignment/?study={study.pk}"
    asked = client.post(url, {"action": "exclude_chosen", "_selected_action": [one.pk for one in done[:2]]})
    data = form_of(asked, number=-1)
    assert set(data["code"]) == {done[0].code, done[1].code}
    refused = client.post("/admin/annotators/assignment/exclude/", data)
    assert refused.status_code == 422 and "required" in errors_of(refused)
    client.post("/admin/annotators/assignment/exclude/", data | {"reason": ["misunderstood"], "reopen": ["on"]})
    assert Exclusion.objects.count() == 2 and study.batches.filter(origin="replacement").count() == 2
    html = client.get(f"{url}&state=excluded").content.decode()
    assert done[0].code[:8] in html and done[2].code[:8] not in html


def test_a_link_can_be_made_before_the_launch(client, owner):
    """Panels are told the address, and a rehearsal is played, while the study is still a draft."""
    draft = builders.spa_draft(owner=owner)
    collects = f"/admin/annotators/inquiry/study/{draft.pk}/collecting/"
    html = client.get(f"/admin/studies/study/{draft.pk}/change/").content.decode()
    assert f'href="{collects}"' in html and f"/studies/{draft.code}/analyses/" not in html
    assert f'href="/admin/annotators/recruitment/add/?study={draft.pk}"' in client.get(collects).content.decode()


def test_an_assignment_is_found_by_its_code_and_told_in_detail(client, study):
    done = players.submitted(study, "1", comment="All fine.")
    players.submitted(study, "2")
    html = client.get(f"/admin/annotators/assignment/?q={done.code[:8]}").content.decode()
    assert "1 result" in html
    html = client.get(detail(done)).content.decode()
    for words in ("Section 2, reading", "All fine.", "Do you read English fluently?", "submitted"):
        assert words in html


def test_an_assignment_is_found_by_the_receipt_that_its_person_names(client, study):
    done, other = players.submitted(study, "1"), players.submitted(study, "2")
    receipt = receipt_of(done.code)
    for typed in (receipt, f" {receipt.lower()} ", receipt.replace("-", "")):
        html = client.get("/admin/annotators/assignment/", {"q": typed}).content.decode()
        assert "1 result" in html and done.code[:8] in html and other.code[:8] not in html
    assert "0 results" in client.get("/admin/annotators/assignment/", {"q": receipt[:-1]}).content.decode()
    assert f"<dt>Receipt</dt><dd>{receipt}</dd>" in client.get(detail(done)).content.decode()
    stranger = logged_in(builders.user("stranger"))
    assert done.code[:8] not in stranger.get("/admin/annotators/assignment/", {"q": receipt}).content.decode()


def test_an_exclusion_is_taken_back_on_the_page(client, study, owner):
    done = players.submitted(study, "1")
    (made,) = exclude([done], "too_fast", owner)
    html = client.get(detail(done)).content.decode()
    assert "excluded from the analysis" in html and "Take the exclusion back" in html
    client.post(f"/admin/annotators/assignment/exclusion/{made.pk}/reverse/", {"note": "No."})
    assert "Taken back" in client.get(detail(done)).content.decode()
    response = client.post(f"/admin/annotators/assignment/exclusion/{made.pk}/reverse/", {"note": "No."}, follow=True)
    assert "already" in errors_of(response)
    assert client.post("/admin/annotators/assignment/exclusion/99999/reverse/").status_code == 404


@pytest.mark.parametrize("codes", [[], ["%00"], ["nonsense"], ["a" * 5000]])
def test_codes_of_nobody_are_refused_with_words(client, study, codes):
    response = client.post("/admin/annotators/assignment/exclude/", {"code": codes, "reason": "too_fast"}, follow=True)
    assert response.status_code == 200 and "Choose at least one assignment" in errors_of(response)


# Links


def test_a_closed_study_without_a_link_does_not_ask_for_one(client, study):
    assert "nobody can come" in collecting(client, study).content.decode()
    lifecycle.close(study, by=None)
    lifecycle.finish(study, by=None)
    page = collecting(client, study).content.decode()
    assert "nobody can come" not in page and "No link was made" in page


def test_a_link_begins_with_its_channel_and_asks_for_its_settings(client, study):
    url = f"/admin/annotators/recruitment/add/?study={study.pk}"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), channel="generic"), follow=True)
    made = Recruitment.objects.get()
    assert (made.channel, made.pool, made.study) == ("generic", "generic", study)
    data = changed(
        form_of(response, "recruitment_form"), **{"settings-person_parameter": "who", "settings-return_complete": "C1"}
    )
    client.post(f"/admin/annotators/recruitment/{made.pk}/change/", data)
    made.refresh_from_db()
    assert made.settings["person_parameter"] == "who" and made.settings["return_complete"] == "C1"
    assert f"/e/{made.key}/?who=…" in collecting(client, study).content.decode()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"settings-return_complete": "http://plain.example.org/x"}, "begins with https"),
        ({"settings-return_full": "https://{person}/x"}, "cannot come from"),
        ({"settings-person_parameter": "a b"}, "valid “slug”"),
        ({"settings-person_parameter": ""}, "required"),
        ({"key": "a/b"}, "valid “slug”"),
        ({"reward": "-1", "wanted": "-5"}, "greater than or equal to 0"),
        ({"currency": "dollars"}, "at most 3"),
        ({"opens_at": "2026-05-02T10:00", "closes_at": "2026-05-01T10:00"}, "close after it opens"),
        ({"opens_at": "2026-02-30T10:00"}, "valid date/time"),
        ({"shown_arms": ["999"]}, "not one of the available"),
    ],
)
def test_bad_settings_of_a_link_are_refused_with_words(client, study, changes, words):
    made = builders.panel(study)
    url = f"/admin/annotators/recruitment/{made.pk}/change/"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), **changes))
    assert response.status_code == 200 and words in errors_of(response), errors_of(response)


def test_another_links_key_is_refused(client, study):
    first, second = builders.panel(study), builders.panel(study)
    url = f"/admin/annotators/recruitment/{second.pk}/change/"
    response = client.post(url, changed(form_of(client.get(url), "recruitment_form"), key=first.key))
    assert "already exists" in errors_of(response)


def test_a_link_is_stopped_and_opened_again_on_its_page(client, study):
    made = builders.panel(study)
    page, door = f"/admin/annotators/recruitment/{made.pk}/change/", f"/admin/annotators/recruitment/{made.pk}/door/"
    assert "Stop this link" in client.get(page).content.decode()
    assert client.post(door, {"stop": "1"})["Location"] == page
    made.refresh_from_db()
    shown = client.get(page).content.decode()
    assert made.stopped_at and "nobody new comes by this link" in shown and "Open this link again" in shown
    client.post(door, {"stop": "1"})  # pressed twice
    client.post(door, {"open": "1"})
    made.refresh_from_db()
    assert made.stopped_at is None
    verbs = AuditEvent.objects.filter(study=study, verb="stop link") | AuditEvent.objects.filter(verb="open link again")
    assert sorted(verbs.values_list("verb", flat=True)) == ["open link again", "stop link"]


def test_the_address_of_a_used_link_stays(client, study):
    made = builders.panel(study)
    players.claimed(study, "1", made)
    data = form_of(client.get(f"/admin/annotators/recruitment/{made.pk}/change/"), "recruitment_form")
    assert "key" not in data and "pool" not in data


# Tokens


def test_a_token_is_shown_once_and_stored_as_its_hash(client, owner):
    import hashlib
    import re

    from analysis.models import ApiToken

    data = changed(
        form_of(client.get("/admin/analysis/apitoken/add/"), "apitoken_form"), name="notebook", scope="write"
    )
    html = client.post("/admin/analysis/apitoken/add/", data).content.decode()
    token = re.search(r'value="(heval_[^"]+)"', html)[1]
    row = ApiToken.objects.get()
    assert row.hash == hashlib.sha256(token.encode()).hexdigest() and row.user == owner
    assert token not in client.get("/admin/analysis/apitoken/").content.decode()
    client.post(f"/admin/analysis/apitoken/{row.pk}/revoke/")
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert list(AuditEvent.objects.order_by("pk").values_list("verb", flat=True)) == ["make token", "revoke token"]


def test_a_token_is_its_makers_alone(client, owner):
    from analysis.models import ApiToken

    row = ApiToken.objects.create(user=owner, name="mine", hash="h")
    stranger = logged_in(builders.user("stranger"))
    assert stranger.post(f"/admin/analysis/apitoken/{row.pk}/revoke/").status_code == 404
    assert "mine" not in stranger.get("/admin/analysis/apitoken/").content.decode()


@pytest.mark.parametrize(
    "changes",
    [{"name": ""}, {"name": "\u200b"}, {"expires_at": "2020-01-01T00:00"}, {"scope": "all"}, {"study": "999"}],
)
def test_a_bad_token_is_refused(client, study, changes):
    from analysis.models import ApiToken

    data = changed(form_of(client.get("/admin/analysis/apitoken/add/"), "apitoken_form"), name="x", **{})
    response = client.post("/admin/analysis/apitoken/add/", data | {k: [v] for k, v in changes.items()})
    assert response.status_code == 200 and errors_of(response).strip() and not ApiToken.objects.exists()


@pytest.mark.parametrize(
    ("key", "words"),
    [("start", "instructions"), ("s2.read", "section 2, reading"), ("s3.p1", "section 3, page 1"), ("s4", "section 4"),
     ("s1.p2f", "section 1, page 2, reasons"), ("s1.p12t", "section 1, page 12, the truth")],
)  # fmt: skip
def test_a_page_is_named_for_what_it_is(key, words):
    assert page_words(key) == words
