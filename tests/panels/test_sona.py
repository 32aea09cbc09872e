"""SONA's channel and its credit, against a stand-in that answers as SONA does: errors come with HTTP 200."""

from urllib.parse import parse_qs, urlsplit

import pytest

from annotators.channels import OUTCOMES, REGISTRY
from annotators.channels.sona.service import SonaService, grant, values_of
from annotators.models import Assignment, Recruitment
from annotators.panels import Busy, Order, Refused, Unclear
from annotators.panels.secrets import keep, kept_secret
from annotators.panels.stand_in import Loopback
from annotators.panels.work import ask_soon
from studies import jobs
from tests.admin_pages import logged_in
from tests.builders import recruitment, spa_study, user
from tests.players import submitted
from tests.robots import Robot
from tests.test_blinding import all_bytes, any_answer

SONA = REGISTRY["sona"]
TOKEN = "0badc0de" * 4
SETTINGS = {"site": "yourschool.sona-systems.com", "experiment_id": "123"}
SECRETS = {"credit_token": TOKEN}
CREDIT = (
    f"https://yourschool.sona-systems.com/webstudy_credit.aspx?experiment_id=123&credit_token={TOKEN}&survey_code=40351"
)

ANSWER = (
    '<WebstudyCreditResponse xmlns="http://tempuri.org/"><WebstudyCreditResult xmlns:a="http://schemas.example.org/sona" '
    'xmlns:i="http://www.w3.org/2001/XMLSchema-instance">{}</WebstudyCreditResult></WebstudyCreditResponse>'
)
NO_ERROR, NO_RESULT = '<a:Errors i:nil="true"/>', '<a:Result i:nil="true"/>'
ERROR = "<a:Errors><a:APIErrorInfo><a:ErrorNumber>3</a:ErrorNumber><a:Message>Invalid token {}</a:Message></a:APIErrorInfo></a:Errors>"
RESULT = "<a:Result><a:credit_status>{}</a:credit_status><a:experiment_id>123</a:experiment_id></a:Result>"


class FakeSona(Loopback):
    """One credit a sign-up, whatever is asked; ``next_answer`` comes once instead of the true one. 'drop' breaks the connection."""

    def __init__(self):
        self.granted, self.asked, self.next_answer, self.status = set(), [], "", 200

    def answer(self, path: str) -> str:
        parts = urlsplit(path)
        asked = {name: value for name, (value,) in parse_qs(parts.query).items()}
        self.asked.append((parts.path, asked))
        if asked["credit_token"] != TOKEN:
            return ANSWER.format(ERROR.format(asked["credit_token"]) + NO_RESULT)
        self.granted.add(asked["survey_code"])
        answer, self.next_answer = self.next_answer or ANSWER.format(NO_ERROR + RESULT.format("G")), ""
        return answer

    def handle(self, handler):
        answer = self.answer(handler.path)
        if answer != "drop":
            handler.send_response(self.status)
            handler.end_headers()
            handler.wfile.write(answer.encode())


@pytest.fixture
def fake():
    with FakeSona() as fake:
        yield fake


def granted(fake, token=TOKEN):
    return grant("yourschool.sona-systems.com", "123", token, "40351", origin=fake.url)


# Credit


def test_credit_is_granted_when_sona_says_so(fake):
    assert granted(fake) == {"credit_status": "G"} and fake.granted == {"40351"}
    ((path, asked),) = fake.asked
    assert path == "/services/SonaAPI.svc/WebstudyCredit"
    assert asked == {"experiment_id": "123", "credit_token": TOKEN, "survey_code": "40351"}


def test_an_error_with_http_200_is_an_error_and_does_not_repeat_the_token(fake):
    with pytest.raises(Refused, match="Invalid token …"):
        granted(fake, "f" * 32)
    assert not fake.granted


@pytest.mark.parametrize(
    ("answer", "raised", "words"),
    [
        (ANSWER.format(NO_ERROR + RESULT.format("N")), Refused, "“N”, not as granted"),
        (ANSWER.format(ERROR.format("x") + RESULT.format("G")), Refused, "Invalid token x"),
        (ANSWER.format(NO_ERROR + NO_RESULT), Unclear, "neither"),
        (ANSWER.format(NO_ERROR + "<a:credit_status>G</a:credit_status>"), Refused, "not as granted"),
        ("<html><body>Maintenance</html>", Unclear, "not XML"),
        (" ", Unclear, "not XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', Unclear, "document type"),
        ("drop", Unclear, "broke"),
    ],
)  # fmt: skip
def test_what_does_not_say_granted_is_not_taken_for_it(fake, answer, raised, words):
    fake.next_answer = answer
    with pytest.raises(raised, match=words):
        granted(fake)


def test_a_server_that_fails_leaves_it_open_and_one_that_is_away_did_nothing(fake):
    fake.status = 500
    with pytest.raises(Unclear):
        granted(fake)
    fake.status = 429
    with pytest.raises(Busy):
        granted(fake)
    with pytest.raises(Busy, match="cannot be reached"):
        grant("yourschool.sona-systems.com", "123", TOKEN, "40351", origin="http://127.0.0.1:1")
    with pytest.raises(Refused, match="not an address"):
        grant("evil.example", "123", TOKEN, "40351")


def test_the_service_grants_once_more_what_may_be_lost_and_shows_no_token(fake):
    service = SonaService("yourschool.sona-systems.com", "123", TOKEN, fake.url)
    order = Order("approve", "t", {"task": "123", "submission": "40351", "person": "40351", "message": ""})
    fake.next_answer = "drop"
    with pytest.raises(Unclear):
        service.do(order)
    assert service.look(order) is None and service.do(order) == {"credit_status": "G"} and fake.granted == {"40351"}
    with pytest.raises(Refused, match="no way to reject"):
        service.do(Order("reject", "t", order.values))
    assert TOKEN not in repr(service)
    door = Recruitment(settings=SETTINGS)
    assert SONA.service(door, SECRETS).can == {"approve"}
    assert SONA.service(door, {}) is None and SONA.service(Recruitment(), SECRETS) is None
    with pytest.raises(Refused, match="no credit token"):
        SONA.service(door, {"credit_token": "a&b"})


def test_text_is_read_below_each_name():
    assert values_of(b"<x:a xmlns:x='u'><b>1<c>2</c></b><c/></x:a>") == {"a": "12", "b": "12", "c": "2"}


# Arrival and the way back


@pytest.mark.parametrize("sent", ["", "1", "12345678", "12a", "٣٤٥", "-12", "1.5"])
def test_a_survey_code_is_a_number_of_two_to_seven_digits(sent):
    assert "2 to 7 digits" in SONA.arrive(Recruitment(settings=SETTINGS), {"survey_code": sent}).problem


def test_a_sign_up_is_nobody_elses_in_another_study_or_site():
    doors = [SETTINGS, SETTINGS | {"experiment_id": "124"}, SETTINGS | {"site": "other.sona-systems.com"}]
    arrivals = [SONA.arrive(Recruitment(settings=door), {"survey_code": "40351"}) for door in doors]
    assert len({arrival.person for arrival in arrivals}) == 3
    assert all(arrival.ids == {"person": "40351", "session": "40351"} for arrival in arrivals)
    assert SONA.arrive(Recruitment(settings=SETTINGS), {"survey_code": "%SURVEY_CODE%"}).is_preview


@pytest.mark.django_db
def test_only_who_completed_is_led_to_the_credit():
    door = recruitment(spa_study(user("owner"), target_n=1), "sona", settings=SETTINGS)
    ends = "https://yourschool.sona-systems.com/"
    assert SONA.way_back(door, "complete", {"session": "40351"}, "R").url == ends
    assert "keep it on the page of the panel" in SONA.problems(door)[0]
    keep(door, SECRETS)
    backs = {outcome: SONA.way_back(door, outcome, {"session": "40351"}, "R") for outcome in OUTCOMES}
    assert backs["complete"].url == CREDIT
    assert {back.url for outcome, back in backs.items() if outcome != "complete"} == {ends}
    assert SONA.way_back(Recruitment(settings={}), "complete", {"session": "40351"}, "R").url == ""
    assert "site, experiment_id" in SONA.problems(Recruitment())[0] and not SONA.problems(door)


@pytest.mark.django_db
def test_the_token_is_kept_on_the_panels_page_and_is_no_setting():
    door = recruitment(spa_study(user("owner"), target_n=2), "sona", settings=SETTINGS)
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{door.pk}/"
    assert f"{address}panel/" in client.get(f"{address}change/").content.decode()
    client.post(f"{address}panel/", {"credit_token": TOKEN, "keep": "1"})
    assert kept_secret(door, "credit_token") == TOKEN and TOKEN not in str(Recruitment.objects.values("settings"))
    pages = [client.get(f"{address}{page}").content.decode() for page in ("change/", "panel/")]
    assert not [page for page in pages if TOKEN in page]
    # SONA shows nobody: who finished here is not said to have failed there.
    done = submitted(door.study, "40351", recruitment=door, external_ids={"person": "40351", "session": "40351"})
    Assignment.objects.filter(pk=done.pk).update(started_at="2026-01-01T00:00:00Z", submitted_at="2026-01-01T00:10:00Z")
    page = client.get(f"{address}panel/").content.decode()
    assert "not sent to the panel" not in page and "shows no other program" in page
    job = ask_soon(door)
    jobs.run(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"site": "https://yourschool.sona-systems.com"}, "site"), ({"site": "evil.example"}, "site"),
        ({"site": "sona-systems.com.evil.example"}, "site"), ({"experiment_id": "12a"}, "experiment_id"), ({"credit_token": TOKEN}, "__all__"),
    ],
)  # fmt: skip
def test_settings_that_are_not_sonas_are_refused(changes, field):
    assert field in SONA.settings_form(SETTINGS | changes).errors
    form = SONA.settings_form(SETTINGS | {"site": "YourSchool.sona-systems.com"})
    assert form.is_valid() and form.cleaned_data["site"] == "yourschool.sona-systems.com"


@pytest.mark.django_db
def test_the_token_is_on_the_last_page_alone():
    door = recruitment(spa_study(target_n=1), "sona", settings=SETTINGS)
    keep(door, SECRETS)
    robot = Robot(f"/e/{door.key}/?survey_code=40351", any_answer)
    assert robot.play() == "Thank you"
    end = [response for response in robot.responses if b"Thank you" in response.content]
    assert CREDIT.replace("&", "&amp;").encode() in end[-1].content
    assert TOKEN.encode() not in all_bytes([response for response in robot.responses if response not in end])
    assert Assignment.objects.get().external_ids == {"person": "40351", "session": "40351"}
