"""Walks through what annotators read at other addresses: a preview of their pages, and the page of a panel that leads to a study."""

import re
from html import unescape

from django.test import RequestFactory

from annotators.admin.preview import render_preview_page
from annotators.recruitment.channels import REGISTRY
from studies.language import active_language
from tests import builders
from tests.annotators.pages.practised import practised_draft
from tests.annotators.views.visitors import door_of
from tests.builders import user
from tests.pseudo_language import give_pseudo_language

from .foreign import in_foreign_letters, launched_abroad
from .seen import Seen
from .walking import walk
from .walks_of_entry import short_draft


@walk
def previews(seen: Seen) -> None:
    request = RequestFactory().get("/")
    request.user = user("owner")
    practised, _ = practised_draft("rating", n_items=2, pass_mark=None, owner=user("owner"))
    previewed = {
        practised: ("s1.p1", "s1.p1t"),
        builders.spa_draft(owner=user("owner")): ("landing", "s2.ask", "done", "consent", "withdraw"),
    }
    for draft, keys in previewed.items():
        study = give_pseudo_language(in_foreign_letters(draft))
        for key in keys:
            seen.add(f"preview of {key}", render_preview_page(request, study, key).html)
            assert active_language().words == "en"


@walk
def page_of_a_panel(seen: Seen, patched) -> None:
    channel, door = door_of(launched_abroad(short_draft()), "external_question")
    door.settings |= {"variant": "link", "site": "https://tasks.example.org"}
    patched.setattr(type(REGISTRY[channel.slug]), "submit_origin", lambda *_: "https://tasks.example.org")
    _, xml = channel.links(door, "https://heval.example.org/e/1/")[1]
    html = re.search(r"<HTMLContent>(.*)</HTMLContent>", xml)
    seen.add("page of a panel", unescape(html[1]))
