"""Prolific's token: it is in one header, goes to one host, and is repeated nowhere."""

import pytest

from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.service import ProlificService
from annotators.recruitment.channels.prolific.stand_in import TOKEN
from annotators.recruitment.panels import PanelBusy, RequestRefused
from tests.annotators.recruitment.channels.prolific.submissions import CODES


def test_the_token_is_in_one_header_and_nowhere_else(fake, caplog):
    wrong = "wrong-token-xyz"
    service = ProlificService(wrong, {}, fake.url)
    with pytest.raises(RequestRefused) as refused:
        service.funds()
    assert "Not a token: Token …" in str(refused.value)
    shown = [
        str(refused.value),
        repr(refused.value),
        repr(service),
        repr(service.client.http),
        repr(vars(service)),
        caplog.text,
    ]
    assert not [words for words in shown if wrong in words]


@pytest.mark.parametrize("token", ["", " ", "a b", "a\nX-Header: b", "ä", "a" * 501])
def test_a_token_that_is_none_is_refused_without_being_repeated(token, fake):
    with pytest.raises(RequestRefused, match="contains spaces or invalid characters") as refused:
        ProlificService(token, {}, fake.url)
    assert not token.strip() or token not in str(refused.value)


@pytest.mark.parametrize(
    "origin",
    [
        "http://api.prolific.com",
        "https://api.prolific.com.evil.example",
        "https://evil.example",
        "https://u@api.prolific.com",
        "ftp://127.0.0.1",
        "https://api.prolific.com/elsewhere",
        "http://192.168.0.7:80",
        "http://127.0.0.1.evil.example",
    ],
)
def test_the_token_goes_to_no_other_host(origin):
    with pytest.raises(RequestRefused, match="not an address of this panel"):
        ProlificService(TOKEN, {}, origin)


def test_a_panel_that_cannot_be_reached_was_not_ordered_anything(fake, task):
    fake.__exit__()
    service = ProlificService(TOKEN, {}, fake.url)
    with pytest.raises(PanelBusy, match="cannot be reached"):
        service.stop({"task": task}, "t")
    fake.__enter__()


def test_the_channel_makes_its_service_from_secrets(settings, fake):
    settings.PROLIFIC_API = fake.url
    channel = REGISTRY["prolific"]
    assert channel.service(Recruitment(), {}) is None
    assert channel.service(Recruitment(settings=CODES), {"token": TOKEN}).funds().amount == 1000
    assert channel.rejection_policy.min_message_length == 100
