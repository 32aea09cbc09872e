"""What goes wrong in the field, each with the tests that show it does not here.

The list is that of the panels' and peers' issue threads: psiTurk, Dallinger, Mephisto, TurkServer, JATOS, oTree, Prolific's forum.
Tests that are nobody else's stand below.
"""

import re

import pytest
from django.test import Client
from django.utils import timezone

from annotators.models import Annotator, Assignment, PageVisit, Response
from annotators.participation import link_actions
from annotators.places import assign
from annotators.recruitment.channels.generic import invitation_token
from studies.services import lifecycle
from tests import ROOT
from tests.builders import panel, recruitment, spa_study, user
from tests.players import claimed
from tests.robots import Page, Robot

QUESTION = "annotators/recruitment/channels/test_external_question"

# What goes wrong: the tests, as "file::name" below tests/.
FIELD = {
    "sent here, lost on the way to the panel": [
        "annotators/recruitment/panels/test_reconcile::test_finished_here_and_never_sent",
        f"{QUESTION}::test_who_finished_here_but_never_reached_the_panel_submits_with_the_new_assignment",
    ],
    "one assignment id, two workers": [
        f"{QUESTION}::test_an_assignment_that_is_given_to_a_second_worker_is_two_works",
        "annotators/recruitment/panels/test_reconcile::test_one_id_of_the_panel_and_two_people",
    ],
    "the panel's form fails": [
        f"{QUESTION}::test_the_last_page_posts_a_receipt_and_no_answer_and_can_be_opened_for_ever",
        f"{QUESTION}::test_with_a_link_in_place_of_the_frame_each_assignment_has_its_code",
    ],
    "a double click": [
        "annotators/views/test_answers_browser::test_a_double_click_sends_once",
        "annotators/pages/test_record::test_the_last_page_sent_twice_submits_once",
    ],
    "opened again": [
        "annotators/pages/test_page_templates::test_a_returning_person_continues",
        "annotators/places/test_assign::test_a_second_claim_gives_the_same_assignment",
    ],
    "a refresh locks out": ["annotators/recruitment/test_field::test_refresh_back_and_a_second_tab_at_every_step_change_nothing"],
    "returned and taken again": [
        f"{QUESTION}::test_a_return_and_another_acceptance_rebinds_the_work_and_keeps_the_answers",
        "annotators/recruitment/panels/test_reconcile::test_who_returned_and_took_it_again_keeps_the_place",
    ],
    "two people, one place": [
        "annotators/places/test_races::test_last_pages_race_the_sweeper_and_nothing_is_lost",
        "annotators/pages/test_record::test_work_that_comes_late_is_kept_and_marked",
    ],
    "a run is stopped, people are in the middle": [
        "annotators/recruitment/test_field::test_who_is_at_work_when_a_link_or_a_study_is_stopped_finishes",
    ],
    "who could not submit cannot be paid": [
        "annotators/pay/test_ledger::test_compensation_replaces_an_approval_that_cannot_come",
        "annotators/admin/test_admin_pay::test_who_never_reached_the_panel_is_paid_by_hand",
    ],
    "unfinished work is counted": [
        "annotators/places/test_assign::test_the_sweeper_releases_what_is_over_and_nothing_else",
        "annotators/test_tasks::test_a_wrong_count_is_found",
    ],
    "more people come than there are places": [
        "annotators/places/test_assign::test_full_is_a_row_too_and_only_one",
        "annotators/views/test_cannot_wait::test_who_cannot_wait_leaves_a_row_and_is_led_back_and_paid",
        "annotators/views/test_cannot_wait::test_at_the_panel_they_are_turned_away_and_not_unknown",
        "annotators/places/test_races::test_full_is_not_said_while_a_claim_may_yet_be_undone",
        "annotators/recruitment/channels/test_prolific_channel::test_each_way_to_end_has_a_code_of_its_own_and_the_address_that_takes_it",
    ],
    "each return uses up a place": [
        "annotators/places/test_assign::test_a_released_place_goes_to_the_next_and_returns_to_its_own_person",
        "annotators/recruitment/panels/test_reconcile::test_each_row_of_the_table_and_the_second_look_changes_nothing",
    ],
    "cookies are dropped in a frame": [
        "annotators/recruitment/channels/test_external_question_browser::test_a_study_is_done_in_the_frame_without_a_cookie_and_the_panel_gets_the_receipt",
    ],
    "a reload shows no code": [
        "annotators/views/test_pages_browser::test_the_end_can_be_reopened_and_leaves_no_copy_behind",
        "annotators/recruitment/test_field::test_refresh_back_and_a_second_tab_at_every_step_change_nothing",
    ],
    "a link preview uses up an invitation": ["annotators/recruitment/test_field::test_looking_at_a_link_uses_nothing_up"],
    "the address to submit to is missing": [
        f"{QUESTION}::test_without_a_hit_or_a_place_to_submit_to_one_may_come_in",
        f"{QUESTION}::test_the_last_form_goes_to_the_panel_whatever_the_address_says",
    ],
    "a form without a second field": [
        f"{QUESTION}::test_the_last_page_posts_a_receipt_and_no_answer_and_can_be_opened_for_ever",
    ],
    "ad blockers hide pages": [
        "rules/test_safety::test_no_class_id_or_address_that_blockers_hide",
        "annotators/pages/test_templates::test_no_name_invites_a_blocker",
    ],
    "pop-ups are blocked": ["annotators/recruitment/test_field::test_no_page_of_an_annotator_needs_a_window_of_its_own"],
    "one worker in several tasks or versions": [
        "annotators/places/test_assign::test_people_of_the_origin_and_of_the_group_are_kept_out",
        "annotators/places/test_assign::test_who_has_done_it_reads_so_and_finds_the_receipt",
        "annotators/recruitment/panels/test_pools::test_at_prolific_those_of_the_first_study_do_not_see_the_second",
    ],
    "a browser's copy of an earlier run": [
        "annotators/views/test_answers_browser::test_what_the_server_never_had_comes_back_from_the_browsers_own_copy",
        "annotators/views/test_pages_browser::test_the_end_can_be_reopened_and_leaves_no_copy_behind",
    ],
    "the server starts anew": [
        "tools/proofs/test_kill_workers::test_workers_killed_while_people_answer_lose_and_double_nothing",
        "annotators/recruitment/panels/test_orders::test_a_process_that_died_after_sending_is_no_second_payment",
    ],
    "one sentence for three reasons": [
        "annotators/recruitment/channels/test_prolific_channel::test_who_cannot_come_in_reads_which_of_three_reasons_it_is",
        "annotators/places/test_assign::test_no_place_right_now_is_not_full",
        "annotators/views/test_cannot_wait::test_only_who_was_asked_to_wait_can_say_so",
    ],
    "scripts accept and never start": ["annotators/recruitment/test_field::test_who_never_starts_holds_a_place_for_the_start_alone"],
    "sent without a code": [
        "annotators/recruitment/panels/test_reconcile::test_people_are_found_by_their_receipt_where_the_link_had_no_id",
        "annotators/recruitment/panels/test_reconcile::test_each_row_of_the_table_and_the_second_look_changes_nothing",
    ],
    "a submission without a code holds the study up": [
        "annotators/pay/verdicts/test_decide::test_a_return_is_asked_for_once_and_only_where_the_panel_can",
        "annotators/pay/verdicts/test_decide::test_a_category_is_open_where_its_evidence_is_there",
    ],
    "states that nobody documented": [
        "annotators/recruitment/channels/prolific/test_prolific_service::test_states_are_mapped_and_a_new_word_changes_nothing",
        "annotators/recruitment/channels/prolific/test_prolific_service::test_who_is_on_the_way_back_is_approved_a_little_later",
    ],
    "one annotator sees another's answers": [
        "bad_input/annotators/test_pages::test_the_answers_of_one_person_do_not_fit_the_page_of_another",
        "test_blinding::test_twins_that_differ_in_every_secret_give_the_same_bytes",
    ],
    "programs that answer": ["annotators/recruitment/test_field::test_no_page_watches_people"],
    "a phone": [
        "annotators/views/test_pages_browser::test_no_page_has_an_accessibility_violation_or_scrolls_sideways",
        "annotators/views/test_pages_browser::test_on_a_phone_prompts_come_one_at_a_time_and_reload_returns_to_the_open_one",
    ],
    "the panel changes how codes work": [
        "annotators/recruitment/channels/test_connect::test_a_code_is_shown_beside_the_way_to_connect",
        "annotators/recruitment/channels/test_prolific_channel::test_without_a_code_people_get_to_prolific_all_the_same",
    ],
    "work that is unknown here is rejected": ["annotators/pay/verdicts/test_decide::test_whom_nobody_can_reject"],
    "excluded is taken for rejected": [
        "annotators/pay/verdicts/test_decide::test_who_is_left_out_of_the_analysis_is_approved_and_paid_all_the_same",
    ],
    "credit hangs on a person's last click": [
        "annotators/recruitment/channels/sona/test_sona_credit::test_who_finishes_is_credited_within_a_minute_and_never_twice",
        "annotators/recruitment/channels/sona/test_sona_credit::test_a_lost_reply_is_asked_for_again_because_credit_is_a_state",
    ],
    "a message is forged, comes twice or out of order": [
        "annotators/recruitment/panels/test_hooks::test_what_prolific_did_not_sign_or_is_no_message_leaves_nothing",
        "annotators/recruitment/panels/test_hooks::test_a_signed_message_is_written_down_once_and_holds_nobodys_id",
        "annotators/recruitment/panels/test_hooks::test_what_holds_at_the_panel_is_applied_whatever_was_said_and_in_whatever_order",
    ],
    "an id is typed in": ["annotators/recruitment/panels/test_arrivals::test_doubts_reach_the_researcher_and_nobody_is_refused"],
    "who leaves is not paid": [
        "annotators/pay/test_promises::test_who_leaves_reads_their_share_and_their_id_is_kept_until_it_is_paid",
        "annotators/pay/verdicts/test_appeals::test_who_withdrew_after_the_end_keeps_pay_reason_and_appeal",
    ],
    "paid twice": [
        "annotators/pay/test_ledger::test_two_looks_at_once_write_it_down_once",
        "annotators/pay/test_ledger::test_a_bonus_whose_reply_was_lost_is_paid_once_and_becomes_paid",
    ],
    "published and badly paid": [
        "annotators/recruitment/panels/test_publishing::test_warnings_compare_what_is_offered_with_what_was_declared",
        "annotators/recruitment/panels/test_publishing::test_the_page_says_what_prevents_publishing",
    ],
    "a preview shows what it must not": [f"{QUESTION}::test_a_preview_shows_title_pay_and_consent_and_writes_nothing"],
    "a panel says success and means error": [
        "annotators/recruitment/channels/sona/test_sona_service::test_an_error_with_http_200_is_an_error_and_does_not_repeat_the_token",
        "annotators/recruitment/channels/sona/test_sona_credit::test_what_sona_refuses_is_shown_and_never_ordered_again_by_itself",
    ],
    "every write, every fault": [
        "annotators/recruitment/panels/test_orders::test_each_order_is_carried_out_once_whatever_becomes_of_the_reply",
        "annotators/recruitment/channels/prolific/test_prolific_service::test_a_reply_that_is_lost_is_looked_up_and_nothing_is_done_twice",
    ],
    "everybody at once": [
        "annotators/places/test_races::test_every_person_gets_one_place_however_many_tabs_they_open",
        "annotators/places/test_races::test_no_more_people_than_places",
        "annotators/places/test_races::test_people_doing_everything_at_once",
    ],
}  # fmt: skip


@pytest.mark.parametrize("problem", FIELD)
def test_what_goes_wrong_in_the_field_has_a_test(problem):
    for place in FIELD[problem]:
        file, _, name = place.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / "tests" / f"{file}.py").read_text(), re.M), place


def everything() -> tuple:
    """What a look must not change. When a place is kept until may move: looking is being there."""
    return (
        list(
            Assignment.objects.order_by("pk").values_list(
                "pk", "batch", "started_at", "submitted_at", "released_at", "seed"
            )
        ),
        list(Response.objects.order_by("pk").values_list("pk", "slot", "value", "choice", "text")),
        list(PageVisit.objects.order_by("pk").values_list("pk", "shown", "recorded_at")),
        Annotator.objects.count(),
    )


@pytest.mark.slow
@pytest.mark.django_db
def test_refresh_back_and_a_second_tab_at_every_step_change_nothing():
    study = spa_study(target_n=2)
    link = f"/e/{panel(study).key}/?who=W1&session=S1"
    robot = Robot(link, seed="W1")
    sent = []  # (address, form) of every page so far
    post = robot.post

    def twice(url, data):
        response = post(url, data)
        if "go" in data or sent:
            sent.append((url, data))
        before, other = everything(), Client()
        for again in {robot.url, link, *(address for address, _ in sent)}:
            assert other.get(again).status_code in (200, 302, 303), again
        for address, old in sent:
            reply = other.post(address, old)
            # The robot came again by the link, so it goes on at an address that shows no stored answers.
            assert reply.status_code in (200, 302, 303) or b"If you sent it twice, all is well" in reply.content, (
                address
            )
        assert everything() == before, url
        return response

    robot.start()
    robot.post = twice
    assert robot.play() == "Thank you"
    assert len(sent) > 3 and Assignment.objects.get().submitted_at
    end = Client().get(robot.url)
    assert "https://panel.example.org/done?cc=C1&amp;s=S1" in end.content.decode()


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("what", ["link", "study"])
def test_who_is_at_work_when_a_link_or_a_study_is_stopped_finishes(what):
    owner = user("owner")
    study = spa_study(owner, target_n=6)
    way = panel(study)
    inside = [Robot(f"/e/{way.key}/?who=W{n}", seed=n) for n in range(5)]
    for robot in inside:
        robot.start()
    if what == "link":
        assert link_actions.stop_link(way, owner) and not link_actions.stop_link(way, owner)
    else:
        lifecycle.start_closing(study, owner)
    late = Robot(f"/e/{way.key}/?who=W9", seed=9)
    assert late.play() != "Thank you" and not Assignment.objects.filter(submitted_at__isnull=False).exists()
    assert [robot.play() for robot in inside] == ["Thank you"] * 5
    assert Assignment.objects.filter(study=study, submitted_at__isnull=False, is_late=False).count() == 5
    if what == "link":
        assert link_actions.reopen_link(way, owner) and late.play() == "Thank you"


@pytest.mark.django_db
def test_looking_at_a_link_uses_nothing_up():
    study = spa_study(target_n=2)
    way = recruitment(study, "invitation", settings={"people": 2})
    link = f"/e/{way.key}/?i={invitation_token(way.key, 1)}"
    before = everything()
    for _ in range(3):  # a scanner of mail, a preview of a messenger, the person on another day
        page = Client().get(link)
        assert page.status_code == 200 and any(
            "start" in dict(form.buttons) for form in Page(page.content.decode()).forms
        )
        assert Client().head(link).status_code == 200
    assert everything() == before
    assert Robot(link, seed=1).play() == "Thank you"


@pytest.mark.django_db
def test_who_never_starts_holds_a_place_for_the_start_alone():
    study = spa_study(target_n=2, start_window_seconds=600, idle_seconds=7200)
    waiting, started = claimed(study, "W1"), claimed(study, "W2")
    assign.mark_started_and_extend_deadline(started)
    seconds = {}
    for one in (waiting, started):
        one.refresh_from_db()
        seconds[one.pk] = (one.reserved_until - timezone.now()).total_seconds()
    assert 590 < seconds[waiting.pk] <= 601 and 7190 < seconds[started.pk] <= 7201


WINDOWS = re.compile(r"window\.open|\balert\(|\bconfirm\(|\bprompt\(|window\.top|\btop\.location|onbeforeunload")


@pytest.mark.parametrize("path", sorted(ROOT.glob("static/*.js")), ids=lambda path: path.name)
def test_no_page_of_an_annotator_needs_a_window_of_its_own(path):
    """Frames of panels forbid them, and blockers close them. Links that open beside the page are a person's own click."""
    if not path.name.startswith("admin"):
        assert not WINDOWS.search(path.read_text())


WATCHES = re.compile(r"paste|keyup|keypress|mousemove|touchmove|\bblur\b|focusout|honeypot")


def test_no_page_watches_people():
    """It would accuse those who dictate, use a screen reader, or write in another window."""
    scripts = [path for path in ROOT.glob("static/*.js") if not path.name.startswith("admin")]
    for path in [*scripts, *ROOT.glob("templates/annotate/**/*.html"), *ROOT.glob("templates/protocols/**/*.html")]:
        assert not WATCHES.search(path.read_text()), path.name
    assert WATCHES.search("on(document, 'paste', tell)")
