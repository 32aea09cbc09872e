"""A scenario of the forms sends a page's form with some fields changed, and gives what the page then says."""

import re
from html import unescape

from django.core.files.uploadedfile import SimpleUploadedFile

from annotators.models import Recruitment
from studies.models import Arm, Study, StudyMember
from studies.services.lifecycle import ActionRefused
from tests import builders
from tests.admin_pages import changed, form_of, logged_in, study_url
from tests.messages.lines import Shown
from tests.messages.pages.scenarios import draft


def said(response) -> list[Shown]:
    """The messages and the faults of fields on a page, each with the label beside it."""
    parts = re.findall(
        r'<(?:li|p|div class="errornote")[^>]*>(.*?)</(?:li|p|div)>', response.content.decode(), re.DOTALL
    )
    return [Shown(re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", part))).strip()) for part in parts]


def me():
    return builders.user()


def sends(url, form_id: str = "", **changes):
    """What is said after the form of a page is sent with these fields changed."""
    client = logged_in(me())
    return said(client.post(url, changed(form_of(client.get(url), form_id), **changes), follow=True))


def study_saved(make=draft, **changes):
    return lambda: sends(study_url(make()), "study_form", **changes)


def row(prefix, number, **columns):
    """The fields of a new row, the next after ``number`` rows of a table on a study's or a section's page."""
    return {f"{prefix}-TOTAL_FORMS": number + 1} | {f"{prefix}-{number}-{name}": one for name, one in columns.items()}


def row_added(prefix, number, make=draft, **columns):
    """The columns may name a system of the study, by a function of the study."""

    def scenario():
        study = make()
        known = {name: one(study) if callable(one) else one for name, one in columns.items()}
        return sends(study_url(study), "study_form", **row(prefix, number, **known))

    return scenario


def system(name):
    return lambda study: study.systems.get(name=name).pk


def posted(make, url, **data):
    """What a page says to this data alone. ``url`` is a function of what ``make`` makes."""

    def scenario():
        about = make()
        return said(logged_in(me()).post(url(about), data, follow=True))

    return scenario


def upload(content, name="file.csv"):
    return SimpleUploadedFile(name, content if isinstance(content, bytes) else content.encode())


def says_refused(act, errors=(ActionRefused, ValueError)):
    """What an act says that refuses."""

    def scenario():
        try:
            act()
        except errors as refused:
            return [Shown(text) for text in str(refused).split("\n")]
        return []

    return scenario


def bare() -> Study:
    """A study of which only the links matter."""
    study = Study.objects.create(title="A draft", reward="2.00")
    StudyMember.objects.create(study=study, user=me(), role="owner")
    Arm.objects.create(study=study, name="all")
    return study


def link(channel="open_link", study=None, **columns) -> Recruitment:
    study = study or bare()
    return Recruitment.objects.create(study=study, channel=channel, pool=channel, **columns)


def link_url(one, what="change/") -> str:
    return f"/admin/annotators/recruitment/{one.pk}/{what}"


def link_saved(channel="open_link", make=bare, settings=None, before=None, **changes):
    """``settings`` are the channel's fields; ``before`` acts upon the link before its form is opened."""

    def scenario():
        one = link(channel, make(), reward="2.00")
        if before:
            before(one)
        wanted = {f"settings-{name}": value for name, value in (settings or {}).items()}
        return sends(link_url(one), "recruitment_form", **wanted, **changes)

    return scenario
