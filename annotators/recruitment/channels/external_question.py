"""External questions: the study runs in the panel's frame, and its last page posts a form to the panel.

The protocol is that of Amazon Mechanical Turk, for HITs with an ExternalQuestion. That service has ended, but others
use the same protocol. These pages need no cookie.
"""

import re
from html import escape
from typing import ClassVar
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from django import forms
from django.conf import settings

from annotators.recruitment.channels import OUTCOMES, Arrival, Channel, WayBack, exported_file, is_unfilled, register
from annotators.recruitment.channels.thresholds import ThresholdsForm
from studies.design.wording import page_language_of
from studies.language import active_language, gettext, gettext_noop, in_language

# The question as XML: the study's address, or a link to the study with a field for the code.


SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"
EXTERNAL = f"{SCHEMAS}2006-07-14/ExternalQuestion.xsd"
HTML = f"{SCHEMAS}2011-11-11/HTMLQuestion.xsd"
MOST_BYTES = 65_535
# The worker's browser renders this on the panel's host, so only a script can read the panel's parameters. Without a
# script only the code is sent, and the person types nothing else.
SURVEY_LINK_HTML = """<!DOCTYPE html>
<html lang="{lang}" dir="{dir}"><head><meta charset="utf-8"><title>{title}</title></head><body>
<form method="post" action="{submit}">
<input type="hidden" name="assignmentId" id="assignment" value="">
<p><a id="study" href="{url}" target="_blank" rel="noopener">{open}</a></p>
<p>{help}</p>
<p><label for="receipt">{code}</label> <input id="receipt" name="receipt" required></p>
<p><button>{send}</button></p>
</form>
<script>
const sent = new URLSearchParams(location.search);
document.getElementById("assignment").value = sent.get("assignmentId") || "";
document.getElementById("study").search = location.search;
</script>
</body></html>
"""


def external_question_xml(url: str) -> str:
    """Return an ExternalQuestion that frames ``url`` in the whole window.

    The panel adds its parameters to the address.
    Raises ValueError if the address is not https or the question is longer than the service accepts.
    """
    return _build_xml("ExternalQuestion", EXTERNAL, {"ExternalURL": _require_https(url), "FrameHeight": "0"})


def survey_link_xml(url: str, submit_url: str) -> str:
    """Return an HTMLQuestion with a link to ``url`` and a field for the code, for a study that opens beside the task."""
    language = active_language()
    words = {
        "lang": language.words,
        "dir": language.direction,
        "url": _require_https(url),
        "submit": submit_url,
        # Translators: the title of a page at a panel with a link to a study
        "title": gettext("Study"),
        "open": gettext("Open the study"),
        "help": gettext("The study opens beside this page. Come back with the code that its last page shows."),
        "code": gettext("Your code"),
        "send": gettext("Submit the task"),
    }
    page = " ".join(SURVEY_LINK_HTML.format(**{name: escape(text) for name, text in words.items()}).split())
    return _build_xml("HTMLQuestion", HTML, {"HTMLContent": page, "FrameHeight": "0"})


def _require_https(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(f"A panel frames only https addresses, not {url!r}.")
    return url


def _build_xml(name: str, namespace: str, elements: dict[str, str]) -> str:
    root = ElementTree.Element(name, xmlns=namespace)
    for tag, text in elements.items():
        ElementTree.SubElement(root, tag).text = text
    # On one line, because the field it is copied from has one line.
    xml = '<?xml version="1.0" encoding="UTF-8"?>' + ElementTree.tostring(root, encoding="unicode")
    if len(xml.encode()) > MOST_BYTES:
        raise ValueError(f"The question is longer than the {MOST_BYTES:,} bytes that the service accepts.")
    return xml


PREVIEW_ASSIGNMENT_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
ID_PATTERN = re.compile(r"[\w.:@-]{1,64}", re.ASCII)
OPEN_FROM_PANEL_MESSAGE = gettext_noop(
    "Please open this page from the panel. Go back there, accept the task and start from it."
)


class QuestionSettings(forms.Form):
    variant = forms.ChoiceField(
        choices=[
            ("frame", "the study runs in the panel's frame"),
            ("link", "the panel shows a link and asks for a code"),
        ],
        initial="frame",
        help_text="With a link, each assignment has its own code.",
    )
    submits = forms.MultipleChoiceField(
        choices=[(key, OUTCOMES[key]) for key in ("screened_out", "failed_checks", "withdrawn")],
        initial=["screened_out", "failed_checks"],
        required=False,
        label="outcomes that may submit without completing",
        help_text=(
            "These people submit the task like those who completed, and you decide what they are paid. "
            "All others are asked to return it."
        ),
        widget=forms.CheckboxSelectMultiple,
    )


class ExternalQuestionSettings(exported_file.FileColumnsForm, QuestionSettings, ThresholdsForm):
    parts = ThresholdsForm.parts | exported_file.FileColumnsForm.parts

    site = forms.CharField(
        max_length=200,
        required=False,
        help_text=(
            "The origin of the site that frames the study and receives its last form, for example "
            "https://tasks.example.org. EXTERNAL_QUESTION_SITES must list it."
        ),
    )

    def clean_site(self):
        value = self.cleaned_data["site"].strip().rstrip("/")
        if value and value not in settings.EXTERNAL_QUESTION_SITES:
            known_sites = ", ".join(settings.EXTERNAL_QUESTION_SITES) or "none"
            raise forms.ValidationError(
                f"EXTERNAL_QUESTION_SITES does not list {value}. It lists: {known_sites}. Enter a listed site, or ask the operator to add yours."
            )
        return value


@register
class ExternalQuestion(Channel):
    slug = "external_question"
    label = "External question (Mechanical Turk's interface)"
    has_form = True
    help = "For a site that frames a study as Mechanical Turk did, with the same parameters and the same last form."
    settings_form: type[forms.Form] = ExternalQuestionSettings
    link_is_personal = True
    preview_words = gettext_noop("Accept the task to start. Nothing is stored before.")

    @property
    def frame_ancestors(self) -> tuple[str, ...]:
        return settings.EXTERNAL_QUESTION_SITES

    def submit_origin(self, recruitment) -> str:
        """Return the origin that receives the last form, regardless of the address; '' if unknown."""
        # Checked each time: nothing is sent to a site that is no longer allowed.
        site = recruitment.settings.get("site", "")
        return site if site in settings.EXTERNAL_QUESTION_SITES else ""

    def read_arrival(self, recruitment, parameters):
        assignment = parameters.get("assignmentId", "").strip()
        if assignment == PREVIEW_ASSIGNMENT_ID:
            return Arrival(is_preview=True)
        worker, task = (parameters.get(name, "").strip() for name in ("workerId", "hitId"))
        if (
            any(map(is_unfilled, (assignment, worker, task)))
            or not ID_PATTERN.fullmatch(assignment)
            or not ID_PATTERN.fullmatch(worker)
            or (task and not ID_PATTERN.fullmatch(task))
        ):
            return Arrival(problem=gettext(OPEN_FROM_PANEL_MESSAGE))
        return Arrival(person=worker, ids={"person": worker, "session": assignment} | ({"task": task} if task else {}))

    def is_retaken_task(self, earlier_ids, current_ids):
        if earlier_ids.get("session") == current_ids.get("session"):
            return None
        # Within one HIT, a person who submitted an assignment gets no second one.
        return bool(current_ids.get("task")) and earlier_ids.get("task") == current_ids.get("task")

    def submit_url(self, recruitment) -> str:
        site = self.submit_origin(recruitment)
        return f"{site}/mturk/externalSubmit" if site else ""

    def way_back(self, recruitment, outcome, external_ids, receipt):
        if outcome != "complete" and (outcome not in recruitment.settings.get("submits", ()) or not receipt):
            return WayBack(
                instructions=gettext(
                    "Please return the task on the panel with its own Return button, so that another person "
                    "can have it."
                )
            )
        if recruitment.settings.get("variant") == "link":
            return WayBack(code=receipt)
        url, session = self.submit_url(recruitment), external_ids.get("session")
        if not url or not session:
            return WayBack(code=receipt)
        return WayBack(
            url=url,
            # The panel requires at least one field beside the assignment's id. Never send the answers: the panel stores
            # what it receives.
            fields={"assignmentId": session, "receipt": receipt, "study": str(recruitment.study.code)},
            label=gettext("Submit the task"),
            instructions=gettext(
                "One last step: submit the task with this button. Until then the panel does not know that "
                "you have finished."
            ),
        )

    def links(self, recruitment, base):
        links = [("Address for the external question (the panel adds its parameters)", base)]
        if base.startswith("https://"):
            if recruitment.settings.get("variant") == "link" and (url := self.submit_url(recruitment)):
                newest = recruitment.study.designs.order_by("version").values_list("pk", flat=True).last()
                with in_language(page_language_of(recruitment.study, newest)):
                    xml = survey_link_xml(base, url)
            else:
                xml = external_question_xml(base)
            links.append(("The complete question, for panels that accept XML", xml))
        return links

    def rehearsal_entry(self, recruitment, base, number):
        ids = {"assignmentId": f"ASSIGNMENT{number:04d}", "hitId": "TASK0001", "workerId": f"A{number:013d}"}
        ids["turkSubmitTo"] = self.submit_origin(recruitment)
        return f"{base}?{urlencode(ids)}", ids["assignmentId"]

    def problems(self, recruitment):
        problems = []
        if not settings.SITE_URL.startswith("https://"):
            problems.append("Panels frame only https pages. Set SITE_URL to an address that begins with https://.")
        if not self.submit_origin(recruitment):
            problems.append(
                "The site that receives the last page is not set or not allowed. Check the link's "
                "settings and EXTERNAL_QUESTION_SITES."
            )
        return problems

    def can_read_export_file(self, recruitment):
        return exported_file.has_file_column_settings(recruitment.settings)

    def read_export(self, recruitment, text, task=""):
        return exported_file.parse_submissions_file(recruitment.settings, text, ID_PATTERN)


@register
class MechanicalTurk(ExternalQuestion):
    """Links from before Amazon ended the service. Their pages, people and payments stay unchanged."""

    slug = "mturk"
    label = "Amazon Mechanical Turk (ended)"
    panel_name = "Amazon Mechanical Turk"
    help = "The service has ended. This link keeps its data. For new studies, use an external question at another site."
    takes_new_links = False
    settings_form = QuestionSettings
    # The ledger contains payments made in these ways.
    pays_by = frozenset({"approval", "bonus"})
    submits_to = "https://www.mturk.com"
    origins: ClassVar[tuple[str, ...]] = (
        "https://worker.mturk.com",
        "https://www.mturk.com",
        "https://requester.mturk.com",
    )
    # The file that the site exported ("Download CSV").
    file: ClassVar = {
        "file_person": "WorkerId",
        "file_session": "AssignmentId",
        "file_state": "AssignmentStatus",
        "file_words": "Submitted = submitted\nApproved = approved\nRejected = rejected",
    }

    @property
    def frame_ancestors(self) -> tuple[str, ...]:
        return (*self.origins, *settings.EXTERNAL_QUESTION_SITES)

    def submit_origin(self, recruitment):
        return self.submits_to

    def can_read_export_file(self, recruitment):
        return True

    def read_export(self, recruitment, text, task=""):
        return exported_file.parse_submissions_file(self.file, text, ID_PATTERN)


@register
class MechanicalTurkSandbox(MechanicalTurk):
    slug = "mturk_sandbox"
    label = "Amazon Mechanical Turk's sandbox (ended)"
    submits_to = "https://workersandbox.mturk.com"
    origins: ClassVar = ("https://workersandbox.mturk.com", "https://requestersandbox.mturk.com")
