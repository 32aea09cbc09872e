"""No row changes where a form beside the admin's is sent back as it is shown."""

import pytest
from django.urls import reverse

from analysis.report.build import validate_parameters
from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY as CHANNELS
from annotators.recruitment.panels import orders
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from studies.models import Job, Prompt, Study
from studies.services import lifecycle
from studies.stimuli.normalising import Preparation
from tests import builders
from tests.admin_pages import errors_of, forms_of, press
from tests.untouched.drafts import PREPARATION, hard_study
from tests.untouched.rows import differences, pages_of, pressed, rows, save_all

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("stored", [{}, PREPARATION, Preparation().as_json()], ids=["none", "odd", "whole"])
def test_the_preparation_of_stimuli(client, owner, stored):
    study = builders.draft_study(owner=owner, prompts=2)
    Prompt.objects.filter(study=study).update(text=" Write W. ")
    Study.objects.filter(pk=study.pk).update(preparation=stored)
    url = reverse("import_preparation", args=[study.pk])
    before = rows()
    for _ in range(2):
        page = client.get(url)
        form = next(one for one in forms_of(page) if "manner" in one.inputs)
        page = press(client, url, form, ("act", "look"))
        form = next(one for one in forms_of(page) if "manner" in one.inputs)
        assert ("act", "prepare") in form.buttons
        page = press(client, url, form, ("act", "prepare"))
        assert page.status_code == 200 and "Done:" in page.content.decode()
        assert not differences(before, rows())


def test_the_pages_of_a_panel(client, owner):
    """Secrets, rounds and the columns of the sample."""
    study = builders.spa_study(owner, target_n=20)
    sample.replace_demographic_columns(
        study, [("Age", "number", True), ("Country of  residence", "category", False)], by=owner
    )
    publishing = [slug for slug, channel in CHANNELS.items() if channel.publishes]
    assert publishing
    for slug in publishing:
        made = builders.recruitment(study, slug, pool=slug)
        store_or_delete_secrets(made, dict.fromkeys(CHANNELS[slug].secrets, "s3cret"), by=owner)
        orders.save_round_plan(made, by=owner, people=7, round_places=3, lost_percent=11)
        before = rows()
        for name, inputs in (
            ("panel", set(CHANNELS[slug].secrets)),
            ("panel_rounds", {"lost_percent"}),
            ("demographics", {"numbers"}),
        ):
            for _ in range(2):
                response = pressed(client, reverse(f"admin:annotators_{name}", args=[made.pk]), inputs)
                assert response.status_code == 302, (name, errors_of(response))
                assert not differences(before, rows()), name


def test_the_parameters_of_a_report(client, owner):
    """The form as it is shown asks for what the report is by itself."""
    study = builders.spa_study(owner, target_n=2)
    response = pressed(client, reverse("analyses", args=[study.pk]), {"level", "resamples"})
    assert response.status_code == 302
    job = Job.objects.get(kind="analyse")
    assert validate_parameters(job.arguments["parameters"], study) == validate_parameters({}, study)


def test_an_amendment_without_a_change_makes_no_version(client, owner):
    study = hard_study(owner)
    # What only a launch would refuse is put right.
    type(study).objects.filter(pk=study.pk).update(bars_flagged_annotators=False, required_qualification="")
    study.contrasts.all().delete()
    study.arms.update(wanted=None, domain="")
    study.arms.get(name="second").systems.clear()
    builders.launched(study, owner)
    before = rows()
    for _ in range(2):
        response = pressed(client, reverse("admin:studies_amend", args=[study.pk]), {"reason"}, reason="Nothing.")
        assert response.status_code == 422 and "You have not changed anything." in errors_of(response)
    with pytest.raises(lifecycle.ActionRefused, match="Nothing would change"):
        same = {column: getattr(study, column) for column in sorted(Study.amendable_fields)}
        lifecycle.amend(study, {"study": {None: same}}, owner, "Nothing.")
    assert not differences(before, rows()) and study.designs.count() == 1
    # The page of a launched study, with its members, is a form too.
    save_all(client, pages_of("studies/study"))
