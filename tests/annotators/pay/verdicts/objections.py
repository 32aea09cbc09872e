"""Objections to a verdict, and what the person's last page says of them."""

import re

from django.test import Client

WHY = "Both of these questions were cut off on my phone."


def last_page(assignment) -> str:
    return Client().get(f"/p/{assignment.code}/done/").content.decode()


def objecting(rejection, text=WHY):
    return Client().post(f"/p/{rejection.assignment.code}/appeal/", {"text": text})


def stages_of(page: str) -> list[str]:
    rows = re.findall(
        r"<li( class=\"reached\")?><b>(\w+)</b>", page.partition('class="stages"')[2].partition("</ol>")[0]
    )
    return [name if is_reached else name.lower() for is_reached, name in rows]


def url(recruitment, what) -> str:
    return f"/admin/annotators/recruitment/{recruitment.pk}/panel/{what}/"
