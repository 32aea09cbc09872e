"""The lines of the settings of a link's channel, and of what its page says is missing in them."""

from django.test import override_settings

from annotators.recruitment.panels.http_client import get_panel_service, store_or_delete_secrets
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import CHANNELS, link, link_saved, link_url, me, said, says_refused

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


LINES = {
    f"{CHANNELS}:clean_outcome_code": [
        ("This code is not valid", "Enter 6 to 64", link_saved("prolific", settings={"code_full": "a b"})),
        (
            "The code contains “complet”",
            "Choose another code",
            link_saved("prolific", settings={"code_full": "COMPLETED"}),
        ),
        ("This code repeats itself", "Choose another code", link_saved("prolific", settings={"code_full": "AAABBB22"})),
    ],
    f"{CHANNELS}:clean": [
        (
            "This code is too similar to",
            "Choose another code",
            link_saved("prolific", settings={"code_full": "A2K7PQ3X", **CODES}),
        ),
        (
            "This would pay people who did not complete as if they had",
            "Use the other address",
            link_saved("connect", settings={"return_complete": "C1", "return_in_part": "c1"}),
        ),
        (
            "No file can be read without it",
            "Enter this column",
            link_saved("generic", settings={"file_state": "Status"}),
        ),
        (
            "A column with the status is named",
            "Enter the meaning of its words",
            link_saved("generic", settings={"file_person": "Id", "file_state": "Status"}),
        ),
        (
            "The words have meanings, but no column",
            "Name the column",
            link_saved("generic", settings={"file_person": "Id", "file_words": "Done = submitted"}),
        ),
        ("One of the two is missing", "Enter both the parameter", link_saved("generic", settings={"key_value": "s"})),
        (
            "Prolific needs both the pay and the number",
            "Enter both, or neither",
            link_saved("prolific", settings={"screen_out_pay": "1.00"}),
        ),
        (
            "The credit token is a secret, not a setting",
            "Store it on the panel page",
            link_saved("sona", settings={"credit_token": "abc"}),
        ),
    ],
    f"{CHANNELS}:clean_connect_return": [
        (
            "This is not an address of Connect",
            "Copy the one that begins with",
            link_saved("connect", settings={"return_complete": "https://other.example.org/x"}),
        ),
        (
            "heval fills in nothing here",
            "Paste the address exactly",
            link_saved("connect", settings={"return_complete": "https://connect.cloudresearch.com/{person}"}),
        ),
    ],
    f"{CHANNELS}:parse_status_meanings": [
        ("Line 1 has no word with a meaning", "Write both", link_saved("generic", settings={"file_words": "Done"})),
        (
            "Line 1: “fine” is not a known meaning",
            "Use one of submitted",
            link_saved("generic", settings={"file_words": "Done = fine"}),
        ),
        (
            "Line 2: “done” is already in line 1",
            "Remove one of these lines",
            link_saved("generic", settings={"file_words": "Done = submitted\ndone = approved"}),
        ),
    ],
    f"{CHANNELS}:clean_site": [
        (
            "EXTERNAL_QUESTION_SITES does not list https://else.example.org",
            "Enter a listed site",
            link_saved("external_question", settings={"site": "https://else.example.org"}),
        ),
    ],
    f"{CHANNELS}:clean_sona_site": [
        (
            "This is not the name of a SONA site",
            "Enter only the name",
            link_saved("sona", settings={"site": "https://x.sona-systems.com"}),
        ),
    ],
    f"{CHANNELS}:clean_return_code_or_url": [
        ("This is no code or address", "Enter a code", link_saved("generic", settings={"return_complete": "a b"})),
        (
            "must not depend on the visitor's parameters",
            "Write the host in full",
            link_saved("generic", settings={"return_complete": "https://{person}.example.org"}),
        ),
        (
            "This is not a return address",
            "It must begin with https://",
            link_saved("generic", settings={"return_complete": "http://a.example.org"}),
        ),
    ],
    f"{CHANNELS}:validate_return_site": [
        (
            "Only these return sites are allowed: https://panel.example.org",
            "The operator of this heval site can add more",
            with_settings(
                link_saved("generic", settings={"return_complete": "https://a.example.org/x"}),
                RETURN_SITES=("https://panel.example.org",),
            ),
        )
    ],
    f"{CHANNELS}:clean_revoked": [
        (
            "These are not numbers of invitations",
            "Enter whole numbers",
            link_saved("invitation", settings={"revoked": "x"}),
        )
    ],
    f"{CHANNELS}:clean_prolific_id": [
        ("This is not an id of Prolific", "Copy its 24 characters", link_saved("prolific", settings={"project": "x"}))
    ],
    f"{CHANNELS}:clean_digits": [
        ("This is not a number", "Copy the number", link_saved("sona", settings={"experiment_id": "a1"}))
    ],
    f"{CHANNELS}:warnings": [
        ("The link has no secret parameter", "Add one in the link's settings", troubles("generic")),
    ],
    f"{CHANNELS}:problems": [
        ("There is no redirect address or code", "Add it in the link's settings", troubles("connect")),
        ("There is no code or address for people who complete", "Add it in the link's settings", troubles("generic")),
        (
            "because RETURN_SITES does not list its site",
            "Enter another address",
            with_settings(
                troubles("generic", return_complete="https://a.example.org/x"), RETURN_SITES=("https://b.example.org",)
            ),
        ),
        ("The link has no invitations", "Enter their number", troubles("invitation")),
        (
            "Panels frame only https pages",
            "Set SITE_URL",
            with_settings(troubles("external_question"), SITE_URL="http://localhost"),
        ),
        ("The site that receives the last page is not set", "Check the link's settings", troubles("external_question")),
        ("There is no code for people who complete", "Add it in the link's settings", troubles("prolific")),
        ("SONA gives no credit without site", "Enter this in the link's settings", troubles("sona")),
        ("without its credit token", "Store it on the panel page", troubles("sona")),
    ],
    f"{CHANNELS}:service": [
        (
            "This is not a credit token",
            "Copy the text between",
            says_refused(lambda: get_panel_service(sona_with_token("not a token")), Exception),
        )
    ],
}
