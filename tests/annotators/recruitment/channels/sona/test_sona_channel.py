"""SONA's channel: who arrives, where the way back leads, and where the token is."""

import pytest

from annotators.models import Assignment, Recruitment
from annotators.models.identity import restored_external_ids
from annotators.recruitment.channels import OUTCOMES
from annotators.recruitment.panels.http_client import decrypt_panel_secret, store_or_delete_secrets
from annotators.recruitment.panels.sync import schedule_sync
from studies.services import jobs
from tests.admin_pages import logged_in
from tests.annotators.recruitment.channels.sona.stand_in import CREDIT, SECRETS, SETTINGS, SONA, TOKEN
from tests.builders import recruitment, spa_study, user
from tests.leaks import all_bytes
from tests.players import submitted
from tests.robots import Robot


@pytest.mark.parametrize("sent", ["", "1", "12345678", "12a", "٣٤٥", "-12", "1.5"])
def test_a_survey_code_is_a_number_of_two_to_seven_digits(sent):
    assert "2 to 7 digits" in SONA.read_arrival(Recruitment(settings=SETTINGS), {"survey_code": sent}).problem


def test_a_sign_up_is_nobody_elses_in_another_study_or_site():
    doors = [SETTINGS, SETTINGS | {"experiment_id": "124"}, SETTINGS | {"site": "other.sona-systems.com"}]
    arrivals = [SONA.read_arrival(Recruitment(settings=door), {"survey_code": "40351"}) for door in doors]
    assert len({arrival.person for arrival in arrivals}) == 3
    assert all(arrival.ids == {"person": "40351", "session": "40351"} for arrival in arrivals)
    assert SONA.read_arrival(Recruitment(settings=SETTINGS), {"survey_code": "%SURVEY_CODE%"}).is_preview


def test_a_nought_in_front_makes_no_second_person_of_a_sign_up():
    people = {
        SONA.read_arrival(Recruitment(settings=SETTINGS), {"survey_code": sent}).person
        for sent in ("40351", "040351", "0040351")
    }
    assert len(people) == 1


@pytest.mark.django_db
def test_only_who_completed_is_led_to_the_credit():
    door = recruitment(spa_study(user("owner"), target_n=1), "sona", settings=SETTINGS)
    ends = "https://yourschool.sona-systems.com/"
    assert SONA.way_back(door, "complete", {"session": "40351"}, "R").url == ends
    assert "Store it on the panel page" in SONA.problems(door)[0]
    store_or_delete_secrets(door, SECRETS, by=None)
    backs = {outcome: SONA.way_back(door, outcome, {"session": "40351"}, "R") for outcome in OUTCOMES}
    assert backs["complete"].url == CREDIT
    assert {back.url for outcome, back in backs.items() if outcome != "complete"} == {ends}
    assert SONA.way_back(Recruitment(settings={}), "complete", {"session": "40351"}, "R").url == ""
    assert "site, experiment_id" in SONA.problems(Recruitment())[0] and not SONA.problems(door)


@pytest.mark.slow
@pytest.mark.django_db
def test_the_token_is_kept_on_the_panels_page_and_is_no_setting():
    door = recruitment(spa_study(user("owner"), target_n=2), "sona", settings=SETTINGS)
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{door.pk}/"
    assert f"{address}panel/" in client.get(f"{address}change/").content.decode()
    client.post(f"{address}panel/", {"credit_token": TOKEN, "keep": "1"})
    assert decrypt_panel_secret(door, "credit_token") == TOKEN and TOKEN not in str(
        Recruitment.objects.values("settings")
    )
    pages = [client.get(f"{address}{page}").content.decode() for page in ("change/", "panel/")]
    assert not [page for page in pages if TOKEN in page]
    # SONA shows nobody: who finished here is not said to have failed there.
    done = submitted(door.study, "40351", recruitment=door, external_ids={"person": "40351", "session": "40351"})
    Assignment.objects.filter(pk=done.pk).update(started_at="2026-01-01T00:00:00Z", submitted_at="2026-01-01T00:10:00Z")
    page = client.get(f"{address}panel/").content.decode()
    assert "not submitted at the panel" not in page and "does not show its submissions to other programs" in page
    job = schedule_sync(door, by=None)
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"site": "https://yourschool.sona-systems.com"}, "site"),
        ({"site": "evil.example"}, "site"),
        ({"site": "sona-systems.com.evil.example"}, "site"),
        ({"experiment_id": "12a"}, "experiment_id"),
        ({"credit_token": TOKEN}, "__all__"),
    ],
)
def test_settings_that_are_not_sonas_are_refused(changes, field):
    assert field in SONA.settings_form(SETTINGS | changes).errors
    form = SONA.settings_form(SETTINGS | {"site": "YourSchool.sona-systems.com"})
    assert form.is_valid() and form.cleaned_data["site"] == "yourschool.sona-systems.com"


@pytest.mark.django_db
def test_the_token_is_on_the_last_page_alone():
    door = recruitment(spa_study(target_n=1), "sona", settings=SETTINGS)
    store_or_delete_secrets(door, SECRETS, by=None)
    robot = Robot(f"/e/{door.key}/?survey_code=40351")
    assert robot.play() == "Thank you"
    end = [response for response in robot.responses if b"Thank you" in response.content]
    assert CREDIT.replace("&", "&amp;").encode() in end[-1].content
    assert TOKEN.encode() not in all_bytes([response for response in robot.responses if response not in end])
    one = Assignment.objects.get()
    assert "40351" not in str(one.external_ids) and restored_external_ids(one) == {
        "person": "40351",
        "session": "40351",
    }
