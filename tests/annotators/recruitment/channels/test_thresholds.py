"""Any panel's link says whom it wants: for the panel's form, in the report's methods and in reporting forms."""

import html

import pytest

from analysis.forms.facts import collect_facts
from annotators.models import Recruitment
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.thresholds import NAMES, NUMBERS, threshold_lines
from studies.models import Study
from studies.services import lifecycle
from tests.admin_pages import logged_in
from tests.analysis.report.reported import report
from tests.builders import add_choice, draft_study, launched, promised, user
from tests.players import submitted

pytestmark = pytest.mark.django_db
# Section A.2 of the paper on SPA.
WANTED = {"min_approval_rate": 98, "min_approved_tasks": 100, "countries": "United States"}
LINES = [
    ("approval rate, at least (%)", "98"),
    ("approved tasks, at least", "100"),
    ("lives in one of these countries", "United States"),
]
PANELS = ("prolific", "connect", "sona", "generic", "external_question")


@pytest.fixture
def study():
    made = draft_study(owner=user("owner"), systems=("alpha", "beta"), prompts=10, target_n=4, consent="")
    add_choice(made, m=2, stopping="none", strategy="any")
    return launched(made)


@pytest.mark.parametrize("channel", PANELS)
def test_the_form_and_the_page_of_any_panels_link_have_the_thresholds(study, channel):
    assert {*NUMBERS, *NAMES} <= set(REGISTRY[channel].settings_form.base_fields)
    link = promised(Recruitment.objects.create(study=study, channel=channel, settings=WANTED))
    assert threshold_lines(link.settings) == LINES
    client = logged_in(study.owner)
    form = client.get(f"/admin/annotators/recruitment/{link.pk}/change/").content.decode()
    assert "Who may see the study at the panel" in form and 'value="98"' in form
    page = html.unescape(client.get(f"/admin/studies/study/{study.pk}/new/link/").content.decode())
    for label, words in LINES:
        assert f">{label.capitalize()}</label>" in page and f'value="{words}"' in page
    sent = "Where heval publishes, it sends this." in page
    assert sent is REGISTRY[channel].publishes and ("heval cannot send this." in page) is not sent


def test_what_a_link_wanted_is_in_the_report_and_in_reporting_forms(study):
    link = promised(Recruitment.objects.create(study=study, channel="generic", pool="p", settings=WANTED))
    for person in ("A", "B"):
        submitted(study, person, recruitment=link)
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study = Study.objects.get(pk=study.pk)
    said = "approval rate, at least (%): 98; approved tasks, at least: 100; lives in one of these countries: United States."
    methods = report(study)["answer"]["methods"]
    assert said in str(methods) and "declared whom it wanted" in str(methods)
    assert said in str(collect_facts(study))
