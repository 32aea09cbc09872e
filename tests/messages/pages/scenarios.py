"""Studies in each state, and what their pages say of an act upon them."""

import re

from django.utils.html import strip_tags

from studies.models import Study
from studies.services import lifecycle
from tests import builders, players
from tests.admin_pages import changed, form_of, logged_in, study_url
from tests.messages.lines import Shown


def by_nobody(step):
    """A step of a study's life that the site itself takes."""
    return lambda study: step(study, None)


def draft(**columns):
    return builders.spa_draft(owner=builders.user(), with_surveys=False, with_rating=False, **columns)


def launched(**columns):
    return builders.launched(draft(**columns), builders.user())


def paused():
    study = launched()
    lifecycle.pause(study, by=None)
    return again(study)


def closed():
    study = launched()
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    return again(study)


def again(study):
    return Study.objects.get(pk=study.pk)


def archived():
    study = draft()
    lifecycle.archive(study, by=None)
    return again(study)


def refused(make, act):
    """What an act says that refuses."""

    def scenario():
        study = make()
        try:
            act(study)
        except lifecycle.ActionRefused as error:
            return [Shown(str(error))]
        return []

    return scenario


def says(make, visit):
    """The notices of the page that follows ``visit(client, study)``, with the next step beside the state."""

    def scenario():
        study = make()
        response = visit(logged_in(builders.user()), study)
        return [Shown(strip_tags(str(message))) for message in response.context["messages"]]

    return scenario


def act(name, **data):
    return lambda client, study: client.post(study_url(study, f"{name}/do/"), data, follow=True)


def next_step_of(make, *changes):
    """The next step beside the state, with the address of its button."""

    def scenario():
        study = make()
        for change in changes:
            change(study)
        page = logged_in(builders.user()).get(study_url(study))
        step = page.context["next_step"]
        assert re.sub(r"\s+", " ", step.why) in re.sub(r"\s+", " ", page.content.decode().replace("&#x27;", "'"))
        return [Shown(step.why, step.url)]

    return scenario


def closing(inside=0, **columns):
    def make():
        study = launched(**columns)
        for n in range(inside):
            players.claimed(study, f"person {n}")
        lifecycle.start_closing(study, by=None)
        return again(study)

    return make


def closing_with_third_labels():
    study = builders.choice_study(prompts=4, target_n=4, by=builders.user(), **players.MAX_THREE)
    lifecycle.start_closing(study, by=None)
    return again(study)


def one_system():
    study = builders.draft_study(systems=("alpha",), owner=builders.user())
    builders.add_choice(study)
    return study


def strange_protocol(study):
    study.sections.update(protocol="gone")


def small_cap():
    return launched(target_n=4, target_cap=4)


def amend(study, **changes):
    lifecycle.amend(study, {"study": {None: changes}}, reason="Because.", by=None)


def amended(client, study):
    address = study_url(study, "amend/")
    page = client.get(address)
    form = next(form_of(page, number=n) for n in range(5) if "reason" in form_of(page, number=n))
    name = next(name for name in form if "contact" in name)
    sent = changed(form, **{name: "other@example.org", "reason": "A new address."})
    return client.post(address, sent | {"confirm": "1"}, follow=True)
