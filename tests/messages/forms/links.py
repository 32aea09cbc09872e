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
from tests.messages.lines import Shown, only_informs
from tests.messages.pages.scenarios import launched


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


def plan(people):
    data = {"people": people, "round_places": "3", "lost_percent": "0"}
    return at_panel(sends_to(**data), "panel/rounds/")


def declared(**columns):
    return posted(link, lambda one: link_url(one, "demographics/"), declare="1", **columns)


def panel_of_new_study():
    """A panel is chosen for a new study, and nobody has said what people get who find no place."""
    owner = builders.user()
    study = builders.draft_study(owner=owner, systems=("alpha", "beta"))
    builders.add_choice(study, strategy="any")
    page = logged_in(owner).post(f"/admin/studies/study/{study.pk}/launch/", {"channel": "prolific"})
    return [Shown(text) for text in page.context["form"].errors["full_pay"]]


FORMS = {
    "People of a panel": panel_of_new_study,
    "The study is closed": says_refused(closed_study),
    "People came by this link": says_refused(used_link),
    "Another link already": another_link,
    "The link would": link_saved(opens_at="2027-05-02T10:00", closes_at="2027-05-01T10:00"),
    "People have come, so pay": link_saved(make=launched, before=has_people, reward="1.00"),
    "People have come, so the currency": link_saved(make=launched, before=has_people, currency="EUR"),
    "People have come, so the promised": link_saved(make=launched, before=has_people, ends_withdrawn="nothing"),
    "needs an amount": link_saved(ends_withdrawn="amount"),
    "Only “…” has an amount": link_saved(ends_withdrawn="share", ends_withdrawn_amount="1.00"),
    "The link is stopped": only_informs(posted(link, lambda one: link_url(one, "state/"), stop="1")),
    "The link is open": only_informs(
        posted(lambda: link(stopped_at=timezone.now()), lambda one: link_url(one, "state/"), open="1")
    ),
    "The link is created": link_added,
    "The rehearsal is starting": only_informs(
        posted(lambda: link(study=launched()), lambda one: link_url(one, "rehearsal/"), people="12")
    ),
    "has no panel": at_panel(sends_to(ask="1"), make=bare, is_ready=False),
    "The study is not launched": published(make=bare),
    "This link is stopped": published(
        lambda one: Recruitment.objects.filter(pk=one.pk).update(stopped_at=timezone.now())
    ),
    "Panels accept only addresses": at_panel(without_https, "panel/publish/"),
    "An earlier order": published(other_values),
    "This link accepts": says_refused(lambda: import_panel_file_and_release_places(link(), "x", None)),
    "The token is stored": only_informs(at_panel(sends_to(keep="1", token="t"), is_ready=False)),
    "submission… imported": only_informs(
        at_panel(
            lambda client, url, one: client.post(url, {"file": upload("S1,P1,submitted"), "take": "1"}, follow=True)
        )
    ),
    "The panel is asked": at_panel(sends_to(ask="1")),
    "Publishing is ordered": published(),
    "There is no refused": at_panel(sends_to(again="1"), "panel/rounds/"),
    "The round is ordered": at_panel(round_repeated, "panel/rounds/"),
    "The plan is saved": only_informs(plan("5")),
    "The study needs": plan("7"),
    "The task will": only_informs(at_panel(task_stopped)),
    "This is no longer": at_panel(order_resolved),
    "The column “……” has more than … characters": declared(numbers="x" * 101),
    "The column “…” is named": declared(numbers="age\nAge"),
    "There are … columns": declared(numbers="\n".join(map(str, range(21)))),
    "Small counts: “…” is not a declared": declared(shown_small="Sex"),
}
