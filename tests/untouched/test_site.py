"""Every form of the site is known, and those that hold what is stored are sent back."""

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import pytest
from django.core.cache import cache
from django.urls import get_resolver, resolve

from annotators.recruitment.channels import REGISTRY as CHANNELS
from annotators.recruitment.panels import orders
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from studies.admin.acts import ACTS
from studies.models import Output, ResearcherFacts, Section, audit
from tests import builders
from tests.addresses import addresses, filled
from tests.admin_pages import errors_of, forms_of, logged_in, press
from tests.untouched.drafts import hard_study
from tests.untouched.rows import differences, rows
from tests.untouched.values import columns_of, variants

pytestmark = pytest.mark.django_db


# Pages whose forms hold what is stored, by the beginning of their address: an untouched one is sent here, and tested above with more values.
HOLD = (
    "admin/annotators/recruitment/<int:pk>/panel/ ", "admin/annotators/recruitment/<int:pk>/panel/rounds/", "admin/annotators/recruitment/<int:pk>/demographics/",
    "admin/annotators/recruitment/<path:object_id>/", "admin/studies/output/<path:object_id>/", "admin/studies/prompt/<path:object_id>/",
    "admin/studies/section/<path:object_id>/", "admin/studies/study/<path:object_id>/", "admin/studies/study/<int:pk>/import/preparation/",
    "admin/studies/study/<int:pk>/new/people/", "admin/studies/study/<int:pk>/new/texts/",
    "admin/studies/study/<int:pk>/report-it/", "admin/studies/study/facts/", "admin/studies/study/<int:pk>/amend/", "boards/<slug:slug>/manage/settings/", "boards/<slug:slug>/manage/members/",
)  # fmt: skip
# Pages whose forms ask for something that is then done, or made: pressing the button is the change.
DO = {
    "admin/analysis/apitoken/": "makes or revokes a token", "admin/analysis/codingsample/": "draws a sample, or codes",
    "admin/annotators/assignment/": "excludes, releases, takes back", "admin/studies/study/<int:pk>/test-run": "makes or deletes a test run", "admin/studies/study/<int:pk>/inbox/": "marks a message", "admin/studies/study/<int:pk>/preview/": "shows a page as annotators see it",
    "admin/annotators/recruitment/add/": "makes a link", "admin/annotators/recruitment/<int:pk>/panel/appeal/": "answers an appeal",
    "admin/annotators/recruitment/<int:pk>/panel/assignment/": "decides about work", "admin/annotators/recruitment/<int:pk>/panel/submission/": "decides about work",
    "admin/annotators/recruitment/<int:pk>/panel/publish/": "publishes", "admin/annotators/recruitment/<int:pk>/panel/order/": "takes back an order",
    "admin/annotators/recruitment/<int:pk>/pay/": "pays a bonus", "admin/annotators/recruitment/<int:pk>/rehearsal/": "plays a rehearsal",
    "admin/password_change/": "Django's own", "admin/studies/section/<int:pk>/practice/": "makes a practice item",
    "admin/studies/section/<int:pk>/test-questions/": "makes test questions",
    "admin/studies/section/<int:pk>/generate-questions/": "generates questions", "admin/studies/section/add/": "makes a section", "admin/studies/study/<int:pk>/launch/": "launches",
    "admin/studies/study/<int:pk>/attention-checks/": "reads a file", "admin/studies/study/<int:pk>/words/": "reads or removes a file", "admin/studies/study/<int:pk>/plan/strategies/": "simulates strategies",
    "admin/studies/study/<int:pk>/plan/test-questions/": "simulates test questions",
    "admin/studies/study/<int:pk>/<slug:name>/do/": "an act of a study", "e/<slug:key>/": "a person comes", "p/<str:code>/": "a person answers",
    "admin/studies/study/<int:pk>/analyses/": "starts an analysis (its parameters are tested above)", "admin/studies/study/<int:pk>/import/": "reads a file",
    "admin/studies/study/new/ ": "makes a study", "admin/studies/study/new/archive/": "reads an archive", "admin/studies/study/new/bundle/": "reads a bundle",
    "admin/studies/study/<int:pk>/coding/draw/": "draws a sample", "admin/studies/study/<int:pk>/events/": "subscribes to events, and tests or ends it",
    "admin/studies/study/<int:pk>/new/file/": "reads a file, or removes a system",
    "admin/studies/study/<int:pk>/new/invented/": "makes a report of invented answers", "admin/studies/study/<int:pk>/share/file/": "makes an archive", "boards/new/": "makes a board", "boards/<slug:slug>/manage/teams/": "makes a team",
    "boards/<slug:slug>/manage/metrics/compute/": "computes metrics", "boards/<slug:slug>/manage/labels/": "writes a file of labels", "boards/<slug:slug>/manage/rounds/": "opens a round", "boards/<slug:slug>/manage/anchors/": "chooses an anchor",
    "boards/<slug:slug>/team/": "submits", "admin/studies/study/<int:pk>/annotators/<slug:annotator>/barring/": "bars, or lifts a barring",
    "admin/studies/study/<int:pk>/judge/": "draws a sample, or compares", "admin/studies/study/<int:pk>/metrics/": "stores or computes scores",
}  # fmt: skip


def asked_routes(ids, study) -> Iterator[tuple[str, str]]:
    """Each address of the site with ids of this study, and each section of it."""
    for route in sorted(set(addresses(get_resolver()))):
        if "studies/section/<" in route:
            for section in study.sections.all():
                yield route, "/" + re.sub(r"<(path:object_id|int:pk)>", str(section.pk), route)
        elif "studies/output/<" in route:
            yield (
                route,
                "/" + route.replace("<path:object_id>", str(Output.objects.filter(system__study=study).first().pk)),
            )
        elif "<slug:name>/do/" in route:
            for name in ACTS:
                yield route, "/" + route.replace("<int:pk>", str(study.pk)).replace("<slug:name>", name)
        else:
            yield route, filled(route, ids)


@pytest.mark.slow
def test_every_form_of_the_site_is_known_and_sent(world):
    """A page with a new form fails here until somebody says whether the form holds what is stored."""
    owner = world["people"]["owner"]
    draft = hard_study(owner)
    training = Section.objects.create(study=draft, position=20, protocol="humanlike", purpose="training", m=1)
    assert training.pk
    audit.record("edit", study=draft, by=owner)
    root = logged_in(world["people"]["administrator"])
    publishing = next(slug for slug, channel in CHANNELS.items() if channel.publishes)
    settings = next(variants(CHANNELS[publishing].settings_form))
    link = builders.promised(builders.recruitment(world["study"], publishing, pool="other", settings=settings))
    store_or_delete_secrets(link, dict.fromkeys(CHANNELS[publishing].secrets, "s3cret"), by=owner)
    of_draft = world | {"study": draft, "door": builders.panel(draft, key="of-draft")}
    of_link = world | {"door": link}
    ResearcherFacts.objects.create(user=world["people"]["administrator"], **columns_of(ResearcherFacts))
    # Without a plan of rounds the form holds a proposal, and its button makes the plan.
    for each in (world, of_draft, of_link):
        orders.save_round_plan(each["door"], by=owner, people=3, round_places=1, lost_percent=0)
    unknown, used, sent = [], set(), 0
    for each, study in ((world, world["study"]), (of_draft, draft), (of_link, world["study"])):
        for route, url in asked_routes(each, study):
            if route.startswith(("api/", "docs/")) or route.endswith((".csv", ".json")):
                continue  # no forms
            if (each is of_link and "recruitment" not in route) or (each is of_draft and route.startswith("p/")):
                continue  # the same page as in the first round
            cache.clear()
            page = root.get(url)
            if page.status_code != 200 or page.streaming or "html" not in page.get("Content-Type", ""):
                continue
            for form in forms_of(page):
                is_list = form.attrs.get("id") == "changelist-form"
                if not form.is_post or not form.buttons or not set(form.inputs) - {None} or is_list:
                    continue
                # A form belongs to the address that it is sent to.
                target = resolve(urlsplit(urljoin(url, form.attrs.get("action") or url)).path).route
                held = next((one for one in HOLD if f"{target} ".startswith(one)), None)
                done = any(f"{target} ".startswith(one) for one in DO)
                used.add(held)
                if held is None:
                    unknown += [] if done else [f"{target} on {route}"]
                    continue
                if "file" in form.inputs:  # a field for a file holds nothing
                    continue
                before = rows()
                answer = press(root, url, form, form.buttons[0])
                assert answer.status_code in (200, 302, 422), (url, answer.status_code, errors_of(answer))
                assert not differences(before, rows()), (url, differences(before, rows()))
                sent += 1
    assert not unknown, "\n".join(sorted(set(unknown)))
    assert not (set(HOLD) - used), sorted(set(HOLD) - used)
    assert sent > len(HOLD)
