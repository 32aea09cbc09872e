"""The lines of a link's form, of its channel's settings, and of the pages of its panel and its sample."""

from decimal import Decimal

from django.test import override_settings
from django.utils import timezone
from pytest import MonkeyPatch

from annotators.models import PanelOrder, PanelTask, Recruitment
from annotators.participation import link_actions
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import order_blocklist_and_publication
from annotators.recruitment.panels.reconcile import import_panel_file_and_release_places
from studies.models import Study
from tests import builders, players
from tests.admin_pages import logged_in
from tests.annotators.recruitment.pretend import Pretend, speaks
from tests.messages.forms.scenarios import (
    CHANNELS,
    PANEL_PAGES,
    bare,
    link,
    link_saved,
    link_url,
    me,
    posted,
    said,
    says_refused,
    sends,
    upload,
)
from tests.messages.lines import NOTHING, Shown
from tests.messages.pages.scenarios import launched

LINKS = "annotators/participation"


def has_people(one):
    """Somebody came by this link, before which it was promised what an early end pays."""
    builders.promised(one, withdrawn="all")
    players.claimed(one.study, "somebody", one)


def another_link():
    first, second = link(), link()
    return sends(link_url(second), "recruitment_form", key=first.key)


def link_added():
    return sends(f"/admin/annotators/recruitment/add/?study={bare().pk}", "recruitment_form", channel="open_link")


def closed_study():
    study = bare()
    Study.objects.filter(pk=study.pk).update(archived_at=timezone.now())
    link_actions.create_link(Recruitment(study=Study.objects.get(pk=study.pk), channel="open_link"), by=None)


def used_link():
    one = link(study=launched())
    has_people(one)
    link_actions.delete_link(one, by=None)


def token_kept(one):
    store_or_delete_secrets(one, {"token": "t"}, by=None)
    return one


def at_panel(visit, what="panel/", make=launched, is_ready=True):
    """``visit(client, url, link)`` at a page of a panel that answers, in memory."""

    def scenario():
        with MonkeyPatch.context() as patch, override_settings(SITE_URL="https://eval.example.org"):
            speaks(patch, Pretend())
            one = link("generic", make(), settings={"return_complete": "C1"})
            if is_ready:
                builders.promised(token_kept(one))
            shown = visit(logged_in(me()), link_url(one, what), one)
            return [Shown(str(shown))] if isinstance(shown, Exception) else said(shown)

    return scenario


def sends_to(**data):
    return lambda client, url, one: client.post(url, data, follow=True)


PUBLISHED = {"title": "Read", "description": "Stories", "places": "4", "minutes": "12", "reward": "2.50"}


def published(change=lambda one: None, make=launched, **more):
    """The cost is shown, then the task is published."""

    def visit(client, url, one):
        change(one)
        page = client.post(url, PUBLISHED | more)
        return client.post(
            url, PUBLISHED | more | {"publish": "1", "seen": page.context["form"].data["seen"]}, follow=True
        )

    return at_panel(visit, "panel/publish/", make)


def other_values(one):
    values = {"title": "t", "description": "d", "minutes": 9, "reward": Decimal("1.00"), "currency": "USD", "places": 2}
    order_blocklist_and_publication(one, by=None, **values)


def without_https(client, url, one):
    page = client.post(url, PUBLISHED)
    with override_settings(SITE_URL="http://localhost"):
        return client.post(url, PUBLISHED | {"publish": "1", "seen": page.context["form"].data["seen"]}, follow=True)


def was_published(one) -> PanelOrder:
    other_values(one)
    now = timezone.now()
    PanelOrder.objects.update(state="done", sent_at=now, ended_at=now, result={"task": "T"})
    return PanelOrder.objects.get()


def order_resolved(client, url, one):
    order = was_published(one)
    return client.post(link_url(one, f"panel/order/{order.pk}/"), {"cancel": "1"}, follow=True)


def task_stopped(client, url, one):
    task = PanelTask.objects.create(recruitment=one, external_id="T", places=2)
    return client.post(link_url(one, f"panel/task/{task.pk}/"), {}, follow=True)


def round_repeated(client, url, one):
    """The panel refused the last round of a published task."""
    from annotators.recruitment.panels import orders

    order = was_published(one)
    PanelTask.objects.create(recruitment=one, external_id="T", places=2)
    orders.save_round_plan(one, by=None, people=6, round_places=2, lost_percent=0)
    players.claimed(one.study, "a", one)
    players.claimed(one.study, "b", one)
    orders.order_next_round(one, by=None)
    PanelOrder.objects.exclude(pk=order.pk).update(state="refused", sent_at=timezone.now(), ended_at=timezone.now())
    return client.post(url, {"again": "1"}, follow=True)


def file_of(channel, text, **settings):
    """What is said of a panel's exported file."""
    return posted(
        lambda: link(channel, settings=settings),
        lambda one: link_url(one, "panel/"),
        file=upload(text),
        take="1",
    )


def large_file():
    from annotators.admin.panel import PanelFileForm

    form = PanelFileForm({}, {"file": upload("x")})
    form.files["file"].size = 10**9
    return [Shown(text) for errors in form.errors.values() for text in errors]


def plan(people):
    data = {"people": people, "round_places": "3", "lost_percent": "0"}
    return at_panel(sends_to(**data), "panel/rounds/")


def declared(**columns):
    return posted(link, lambda one: link_url(one, "demographics/"), declare="1", **columns)


LINES = {
    f"{LINKS}:create_link": [
        ("The study is closed or archived, so it cannot have a new link", "Clone it", says_refused(closed_study))
    ],
    f"{LINKS}:delete_link": [
        ("People came by this link, so it stays on record", "Stop it instead", says_refused(used_link))
    ],
    f"{LINKS}:find_link_errors": [
        ("Another link already has this name", "Choose another name", another_link),
        (
            "The link would close before it opens",
            "Enter a later time",
            link_saved(opens_at="2027-05-02T10:00", closes_at="2027-05-01T10:00"),
        ),
    ],
    f"{LINKS}:_find_lowered_promises": [
        (
            "People have come, so pay can only rise",
            "Enter at least 2.00",
            link_saved(make=launched, before=has_people, reward="1.00"),
        ),
        (
            "the currency cannot change",
            "Enter the earlier currency again",
            link_saved(make=launched, before=has_people, currency="EUR"),
        ),
        (
            "the promised pay can only rise",
            "Choose the earlier rule, or a better one",
            link_saved(make=launched, before=has_people, ends_withdrawn="nothing"),
        ),
    ],
    f"{PANEL_PAGES}:_clean_promises": [
        ("“a fixed amount” needs an amount", "Enter it here", link_saved(ends_full="amount")),
        ("Only “a fixed amount” has an amount", "or leave the amount empty", link_saved(ends_full_amount="1.00")),
    ],
    f"{PANEL_PAGES}:stop_or_reopen_view": [
        ("The link is stopped", NOTHING, posted(link, lambda one: link_url(one, "state/"), stop="1")),
        (
            "The link is open to new people again",
            NOTHING,
            posted(lambda: link(stopped_at=timezone.now()), lambda one: link_url(one, "state/"), open="1"),
        ),
    ],
    f"{PANEL_PAGES}:response_add": [
        (
            "The link is created",
            "Now set its channel below",
            link_added,
        )
    ],
    f"{PANEL_PAGES}:rehearsal_view": [
        (
            "The rehearsal is starting",
            NOTHING,
            posted(lambda: link(study=launched()), lambda one: link_url(one, "rehearsal/"), people="12"),
        )
    ],
    f"{CHANNELS}:get_panel_service": [
        (
            "has no panel token",
            "Store the token on the panel page",
            at_panel(sends_to(ask="1"), make=bare, is_ready=False),
        )
    ],
    f"{CHANNELS}:publishing_obstacles": [
        (
            "The study is not launched",
            "Launch it first",
            published(make=bare),
        ),
        (
            "This link is stopped",
            "Open it again first",
            published(lambda one: Recruitment.objects.filter(pk=one.pk).update(stopped_at=timezone.now())),
        ),
        (
            "Panels accept only addresses that begin with https://",
            "Set SITE_URL",
            at_panel(without_https, "panel/publish/"),
        ),
    ],
    f"{CHANNELS}:order_blocklist_and_publication": [
        ("An earlier order to publish with other values is still open", "Wait until it ends", published(other_values))
    ],
    f"{CHANNELS}:import_panel_file_and_release_places": [
        (
            "This link accepts no exported file",
            "Enter the file's columns",
            says_refused(lambda: import_panel_file_and_release_places(link(), "x", None)),
        )
    ],
    f"{PANEL_PAGES}:panel_view": [
        ("The token is stored and encrypted", NOTHING, at_panel(sends_to(keep="1", token="t"), is_ready=False)),
        (
            "1 submission imported",
            NOTHING,
            at_panel(
                lambda client, url, one: client.post(url, {"file": upload("S1,P1,submitted"), "take": "1"}, follow=True)
            ),
        ),
    ],
    f"{PANEL_PAGES}:_request_sync": [("The panel is asked now", "Reload this page", at_panel(sends_to(ask="1")))],
    f"{PANEL_PAGES}:_try_publish": [("Publishing is ordered", "Reload this page", published())],
    f"{PANEL_PAGES}:panel_rounds_view": [
        ("There is no refused round", "You need not do anything", at_panel(sends_to(again="1"), "panel/rounds/")),
        ("The round is ordered again", "Reload this page", at_panel(round_repeated, "panel/rounds/")),
        ("The plan is saved", NOTHING, plan("5")),
    ],
    f"{PANEL_PAGES}:clean_people": [("The study needs only 6 people", "Enter at most this number", plan("7"))],
    f"{PANEL_PAGES}:stop_panel_task_view": [("The task will be stopped", NOTHING, at_panel(task_stopped))],
    f"{PANEL_PAGES}:cancel_or_resolve_panel_order_view": [
        ("the order's status has changed", "Read its new status", at_panel(order_resolved))
    ],
    f"{PANEL_PAGES}:clean_file": [
        ("The file is larger than 8 MB", "Export fewer submissions", large_file),
        ("The file is not UTF-8 text", "Save it as", file_of("prolific", b"\xff\xfe")),
    ],
    f"{PANEL_PAGES}:clean": [
        ("has more than 100 characters", "Shorten it here and in the file", declared(numbers="x" * 101)),
        ("The column “age” is named twice", "Remove one of the two lines", declared(numbers="age\nAge")),
        ("There are 21 columns", "Declare at most 20", declared(numbers="\n".join(map(str, range(21))))),
        ("“Sex” is not a declared column", "or remove it here", declared(shown_small="Sex")),
    ],
}
