"""The lines of the settings of a link's channel, and of what its page says is missing in them."""

from django.test import override_settings

from annotators.recruitment.panels.http_client import get_panel_service, store_or_delete_secrets
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import link, link_saved, link_url, me, said, says_refused

CODES = {"code_complete": "A2K7PQ3M"}


def with_settings(scenario, **settings):
    def changed():
        with override_settings(**settings):
            return scenario()

    return changed


def troubles(channel, **settings):
    """What the page of a link says is missing, before its form is sent."""
    return lambda: said(logged_in(me()).get(link_url(link(channel, settings=settings))))


def sona_with_token(token):
    one = link("sona", settings={"site": "x.sona-systems.com", "experiment_id": "1"})
    store_or_delete_secrets(one, {"credit_token": token}, by=None)
    return one


FORMS = {
    "An open link": lambda: said(logged_in(me()).get(link_url(link("open_link", reward=1)))),
    "This code is not valid": link_saved("prolific", settings={"code_full": "a b"}),
    "The code contains": link_saved("prolific", settings={"code_full": "COMPLETED"}),
    "This code repeats": link_saved("prolific", settings={"code_full": "AAABBB22"}),
    "This code is too": link_saved("prolific", settings={"code_full": "A2K7PQ3X", **CODES}),
    "This would pay": link_saved("connect", settings={"return_complete": "C1", "return_in_part": "c1"}),
    "Enter this column": link_saved("generic", settings={"file_state": "Status"}),
    "A column with the status": link_saved("generic", settings={"file_person": "Id", "file_state": "Status"}),
    "The words have meanings": link_saved("generic", settings={"file_person": "Id", "file_words": "Done = submitted"}),
    "There are … names": link_saved("generic", settings={"countries": "\n".join(f"country {n}" for n in range(61))}),
    "One of the two": link_saved("generic", settings={"key_value": "s"}),
    "Prolific needs both": link_saved("prolific", settings={"screen_out_pay": "1.00"}),
    "The credit token": link_saved("sona", settings={"credit_token": "abc"}),
    "This is not an address": link_saved("connect", settings={"return_complete": "https://other.example.org/x"}),
    "heval fills in nothing": link_saved(
        "connect", settings={"return_complete": "https://connect.cloudresearch.com/{person}"}
    ),
    "Line … has no word": link_saved("generic", settings={"file_words": "Done"}),
    "Line …: “…” is not a known": link_saved("generic", settings={"file_words": "Done = fine"}),
    "Line …: “…” is already": link_saved("generic", settings={"file_words": "Done = submitted\ndone = approved"}),
    "EXTERNAL_QUESTION_SITES does not list": link_saved(
        "external_question", settings={"site": "https://else.example.org"}
    ),
    "This is not the name": link_saved("sona", settings={"site": "https://x.sona-systems.com"}),
    "This is no code": link_saved("generic", settings={"return_complete": "a b"}),
    "The host of a return": link_saved("generic", settings={"return_complete": "https://{person}.example.org"}),
    "This is not a return": link_saved("generic", settings={"return_complete": "http://a.example.org"}),
    "Only these return": with_settings(
        link_saved("generic", settings={"return_complete": "https://a.example.org/x"}),
        RETURN_SITES=("https://panel.example.org",),
    ),
    "These are not numbers": link_saved("invitation", settings={"revoked": "x"}),
    "This is not an id": link_saved("prolific", settings={"project": "x"}),
    "This is not a number": link_saved("sona", settings={"experiment_id": "a1"}),
    "The link has no secret": troubles("generic"),
    "There is no redirect": troubles("connect"),
    "There is no code or address": troubles("generic"),
    "heval does not use": with_settings(
        troubles("generic", return_complete="https://a.example.org/x"), RETURN_SITES=("https://b.example.org",)
    ),
    "The link has no invitations": troubles("invitation"),
    "Panels frame only https": with_settings(troubles("external_question"), SITE_URL="http://localhost"),
    "The site that receives": troubles("external_question"),
    "There is no code for people": troubles("prolific"),
    "SONA gives no credit without …. Enter": troubles("sona"),
    "SONA gives no credit without its credit": troubles("sona"),
    "This is not a credit": says_refused(lambda: get_panel_service(sona_with_token("not a token")), Exception),
}
