"""A name is one line that can be seen, and no two names read alike."""

import pytest

from studies.design.serialization import canonical_json, serialize_design
from studies.models import Arm, Study, System
from tests import builders
from tests.admin_pages import errors_of, form_of, study_url
from tests.bad_input.studies.forms import refused, save, saved

pytestmark = pytest.mark.django_db


NAMES = {
    "empty": ("", "required"),
    "blank": ("   ", "required"),
    "zero width": ("\u200b\u200d", "no visible character"),
    "marks alone": ("\u0301\u0302", "no visible character"),
    "NUL": ("a\x00b", "Null characters"),
    "control character": ("a\x07b", "control character (U+0007) at character 2"),
    "zero width within": ("al\u200bpha", "invisible character (U+200B) at character 3"),
    "turned around": ("a\u202eb", "invisible character (U+202E) at character 2"),
    "two lines": ("a\nb", "invisible character (U+000A)"),
    "line separator": ("a\u2028b", "invisible character (U+2028)"),
    "10,000 characters": ("n" * 10_000, "characters (it has 10000)"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "said"), NAMES.values(), ids=NAMES)
def test_a_name_is_one_line_that_can_be_seen(client, small, name, said):
    before = canonical_json(serialize_design(small))
    response = save(client, small, **{"title": name, "systems-0-name": name, "arms-0-name": name})
    assert response.status_code == 200 and errors_of(response).count(said) == 3, errors_of(response)
    assert canonical_json(serialize_design(Study.objects.get(pk=small.pk))) == before
    refused(client, small.prompts.first(), said, key=name)


@pytest.mark.parametrize("name", ["P000", "ｐ000", " p000 ", "p000"], ids=["case", "width", "blanks", "the same"])
def test_a_prompts_key_that_reads_like_anothers_is_refused(client, small, name):
    refused(client, small.prompts.get(key="p001"), "Another prompt has this key: “p000”", key=name)


@pytest.mark.slow
def test_keys_of_questions_and_links_that_differ_only_in_case_are_refused(client, study):
    section = study.sections.get(protocol="spa")
    keys = {"questions-0-key": "better", "questions-1-key": "Better"}
    refused(client, section, "Another question of this section has the key “better”", **keys)
    one, other = builders.panel(study, key="autumn"), builders.panel(study)
    refused(client, other, "already has this name", key="AUTUMN")
    saved(client, one, key="Autumn")  # its own


def test_names_are_stored_composed_and_without_blanks_around_them(client, small):
    saved(client, small, **{"systems-0-name": "  cafe\u0301 "})
    assert System.objects.filter(study=small, name="caf\u00e9").exists()


TRADES = {
    "names of systems": ("systems", ["name"], lambda s: s.systems.order_by("pk").values_list("name", flat=True)),
    "names of arms": ("arms", ["name"], lambda s: s.arms.order_by("pk").values_list("name", flat=True)),
    "rules": ("exclusion_rules", ["rule"], lambda s: s.exclusion_rules.order_by("pk").values_list("rule", flat=True)),
    "comparisons": ("contrasts", ["x", "y"], lambda s: s.contrasts.order_by("pk").values_list("x__name", "y__name")),
}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "stored"), TRADES.values(), ids=TRADES)
def test_two_rows_may_trade_what_each_has_for_itself_alone(client, study, rows, columns, stored):
    Arm.objects.create(study=study, name="second")
    before = list(stored(study))
    form = form_of(client.get(study_url(study)), "study_form")
    saved(client, study, **{f"{rows}-{n}-{c}": form[f"{rows}-{1 - n}-{c}"] for n in (0, 1) for c in columns})
    assert list(stored(study)) == [before[1], before[0], *before[2:]]


@pytest.mark.slow
def test_two_questions_trade_keys_and_a_new_name_may_be_that_of_a_row_that_goes(client, study):
    section = study.sections.get(protocol="spa")
    keys = list(section.questions.order_by("pk").values_list("key", flat=True))
    saved(client, section, **{"questions-0-key": keys[1], "questions-1-key": keys[0]})
    assert list(section.questions.order_by("pk").values_list("key", flat=True)) == [keys[1], keys[0], *keys[2:]]
    # The key of the first, which goes, is that of the second from now on.
    saved(client, section, **{"questions-0-DELETE": "on", "questions-1-key": keys[1]})
    assert list(section.questions.order_by("pk").values_list("key", flat=True)) == keys[1:]
