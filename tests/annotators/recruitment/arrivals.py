"""People who come by a panel's link, and answer every page."""

from django.test import Client

from annotators.models import Assignment, Recruitment
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from tests.builders import recruitment, spa_study, user
from tests.players import answered

PEOPLE = {name: f"{n:x}f1a" * 6 for n, name in enumerate(("done", "half", "gone"), 1)}


def recruited(channel: str, secrets: dict, **settings) -> Recruitment:
    made = recruitment(spa_study(user("owner")), channel, settings=settings)
    store_or_delete_secrets(made, secrets, by=None)
    return made


def came(recruitment, **parameters) -> Assignment:
    """Somebody follows the panel's link and presses Start."""
    answer = Client().post(
        f"/e/{recruitment.key}/",
        {"start": "1", "agree": "1"},
        QUERY_STRING="&".join(f"{k}={v}" for k, v in parameters.items()),
    )
    assert answer.status_code == 302, answer.content
    return Assignment.objects.get(code=answer.url.split("/")[2])


def finished(assignment) -> str:
    """They answer every page; gives the last one."""
    while answered(assignment).next_key is not None:
        pass
    return Client().get(f"/p/{assignment.code}/done/").content.decode()
