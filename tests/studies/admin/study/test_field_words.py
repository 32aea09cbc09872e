"""Forms ask in words, with a unit, and tell the default that holds."""

import re

import pytest

from studies.models import Contrast, ExclusionRule, Study
from tests import builders
from tests.admin_pages import study_url
from tests.studies.admin.study.saved import page

pytestmark = pytest.mark.django_db
# What a column is called is for the data; a person who fills in a form is asked for something, in a unit.
COLUMNS = re.compile(
    r">\s*(Start window seconds|Idle seconds|Grace seconds|Target n|Target kind|Target cap|Erase after days|X condition|Wanted|"
    r"Level|Estimand|Family|Tau|Symmetric|Position|M):?\s*<"
)


@pytest.mark.slow
def test_forms_ask_in_words_with_a_unit_and_say_what_holds_where_nothing_is_said(client, study):
    ExclusionRule.objects.create(study=study, position=1, rule="incoherent", settings={"tau": 1.1, "symmetric": False})
    recruitment = builders.recruitment(study)
    section = study.sections.get(protocol="spa")
    pages = [study_url(study), f"/admin/studies/section/{section.pk}/change/"]
    pages.append(f"/admin/annotators/recruitment/{recruitment.pk}/change/")
    draft = "".join(client.get(url).content.decode() for url in pages)
    assert not COLUMNS.search(draft), COLUMNS.findall(draft)
    assert (
        "Position in the study:" in draft
        and "Significance level" in draft
        and "largest sum of two answers (tau):" in draft
    )
    builders.launched(study)
    html = page(client, study).content.decode()
    amended = client.get(study_url(study, "amend/")).content.decode()
    for words in (html, amended, draft):
        assert not COLUMNS.search(words), COLUMNS.findall(words)
        assert "Time for a page, in seconds:" in words and "30 minutes or 3 times the declared minutes" in words
        assert "By default 600 (10 minutes)." in words and "Time to finish after closing, in seconds:" in words


def test_the_defaults_that_help_texts_tell_are_those_that_hold():
    from studies.admin.field_labels import HELP

    for name, told in HELP["study"].items():
        default = Study._meta.get_field(name).default
        if found := re.search(r"By default (\d+)", told):
            assert int(found[1]) == default, name
    assert f"By default {Contrast._meta.get_field('level').default}." == HELP["contrast"]["level"]


def test_no_setting_tells_a_default_that_is_made_anew_each_time():
    """Prolific's codes once offered “<function new_code at 0x…>”."""
    from annotators.recruitment import channels
    from studies import protocols
    from studies.admin.forms import prefixed_settings_fields
    from studies.models import design

    forms = [one.settings_form for registry in (channels, protocols, design) for one in registry.REGISTRY.values()]
    fields = [field for form in forms for field in prefixed_settings_fields(form).values()]
    assert any(callable(field.initial) for field in fields)
    assert not [field.label for field in fields if " at 0x" in f"{field.help_text} {field.widget.attrs}"]
