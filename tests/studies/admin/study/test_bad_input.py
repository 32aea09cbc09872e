"""Bad input to a study's page and to lists ends in words, and nothing is stored."""

import pytest

from studies.design.serialization import canonical_json, serialize_design
from studies.models import Study
from tests import builders
from tests.admin_pages import errors_of, form_of, logged_in, study_url
from tests.studies.admin.study.saved import page

pytestmark = pytest.mark.django_db
# Bad input: each ends in words about the field, nothing is stored.

LONG = "n" * 10_000
BAD_COLUMNS = {
    "empty title": ({"title": ""}, "required"),
    "blank title": ({"title": "   "}, "required"),
    "zero-width title": ({"title": "\u200b\u200d"}, "no visible character"),
    "10k title": ({"title": LONG}, "at most 200 characters"),
    "NUL in a title": ({"title": "a\x00b"}, "Null characters"),
    "control character": ({"institution": "a\x07b"}, "control character"),
    "no language": ({"language": "en_GB!"}, "language tag"),
    "no currency": ({"currency": "€"}, "three letters"),
    "target 0": ({"target_n": "0"}, "Enter at least 1"),
    "target below 0": ({"target_n": "-3"}, "greater than or equal to 0"),
    "target 1e9 and more": ({"target_n": "99999999999999999999"}, "less than or equal to"),
    "cap below target": ({"target_n": "10", "target_cap": "5"}, "is below the target"),
    "reward is NaN": ({"reward": "NaN"}, "number"),
    "reward below 0": ({"reward": "-1"}, "greater than or equal to 0"),
    "reward with a comma": ({"reward": "2,5,0"}, "number"),
    "start window 0": ({"start_window_seconds": "0"}, "greater than or equal to 60"),
    "idle 0": ({"idle_seconds": "0"}, "Enter at least 60"),
    "idle below": ({"idle_seconds": "3"}, "greater than or equal to 60"),
    "a date that is none": ({"withdrawal_until": "2026-02-30"}, "valid date"),
    "a date in words": ({"withdrawal_until": "tomorrow"}, "valid date"),
    "seed too large": ({"seed": str(2**63)}, "less than or equal to"),
    "seed below 0": ({"seed": "-1"}, "greater than or equal to 0"),
    "batches 0": ({"annotators_per_batch": "0"}, "greater than or equal to 1"),
    "no choice": ({"coverage": "sometimes"}, "not one of the available choices"),
    "system without name": ({"systems-0-name": ""}, "required"),
    "blank system": ({"systems-0-name": "\u200b"}, "no visible character"),
    "system name too long": ({"systems-0-name": LONG}, "at most 100 characters"),
    "same system twice": ({"systems-0-name": "beta"}, "Another system has this name"),
    "same but for case": ({"systems-0-name": "BETA"}, "Another system has this name"),
    "same but for Unicode form": ({"systems-0-name": "caf\u00e9", "systems-1-name": "cafe\u0301"}, "Another system"),
    "x is y": ({"contrasts-0-x": "same"}, "cannot be compared with itself"),
    "the same comparison reversed": (
        {"contrasts-1-x": "first y", "contrasts-1-y": "first x"},
        "Two rows have this comparison",
    ),
    "margin below 0": ({"contrasts-0-margin": "-0.1"}, "greater than or equal to 0"),
    "margin 0": ({"contrasts-0-margin": "0"}, "above 0"),
    "margin infinite": ({"contrasts-0-margin": "1e309"}, "number"),
    "level 0": ({"contrasts-0-level": "0"}, "greater than or equal to"),
    "level NaN": ({"contrasts-0-level": "NaN"}, "number"),
    "x of another study": ({"contrasts-0-x": "999999"}, "not one of the available choices"),
    "x is a word": ({"contrasts-0-x": "alpha"}, "not one of the available choices"),
    "two conditions and two systems": (
        {"contrasts-0-x_condition": "none", "contrasts-0-y_condition": "examples"},
        "two systems or two conditions",
    ),
    "one condition": ({"contrasts-0-x": "", "contrasts-0-y": "", "contrasts-0-x_condition": "none"}, "two conditions"),
    "a family without a name": (
        {"comparison_families-TOTAL_FORMS": "1", "comparison_families-0-after": "primary"},
        "required",
    ),
    "a family twice": (
        {
            "comparison_families-TOTAL_FORMS": "2",
            "comparison_families-0-name": "primary",
            "comparison_families-1-name": "Primary",
        },
        "Another family of comparisons has this name",
    ),
    "a family after itself": (
        {
            "comparison_families-TOTAL_FORMS": "1",
            "comparison_families-0-name": "primary",
            "comparison_families-0-after": "primary",
        },
        "cannot wait for itself",
    ),
    "m below 0": ({"sections-0-m": "-1"}, "greater than or equal to 0"),
    "m 1e9": ({"sections-0-m": "1000000000"}, "less than or equal to"),
    "m is no number": ({"sections-0-m": "four"}, "whole number"),
    "wanted below 0": ({"arms-0-wanted": "-1"}, "greater than or equal to 0"),
    "no arm left": ({"arms-0-DELETE": "on"}, "at least one arm"),
    "no owner left": ({"members-0-role": "viewer"}, "at least one owner"),
    "nobody of that name": (
        {"members-TOTAL_FORMS": "2", "members-1-username": "nobody", "members-1-role": "viewer"},
        "No active user has this name",
    ),
    "a member twice": (
        {"members-TOTAL_FORMS": "2", "members-1-username": "olga", "members-1-role": "viewer"},
        "twice",
    ),
    "no management form": ({"systems-TOTAL_FORMS": "abc"}, "missing or has been tampered"),
}


@pytest.fixture(scope="module")
def draft(module_transaction):
    """A draft that no test changes, with its page's form and its design."""
    owner = builders.user("olga")
    study = builders.spa_draft(owner=owner, with_surveys=False)
    return study, form_of(page(logged_in(owner), study), "study_form"), canonical_json(serialize_design(study))


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD_COLUMNS)
def test_bad_input_ends_in_words_and_stores_nothing(client, draft, name):
    study, form, before = draft
    changes, words = BAD_COLUMNS[name]
    data = dict(form)
    stand_ins = {
        "same": data["contrasts-0-y"][0],
        "first x": data["contrasts-0-x"][0],
        "first y": data["contrasts-0-y"][0],
    }
    data |= {field: [stand_ins.get(value, value)] for field, value in changes.items()}
    response = client.post(study_url(study), data)
    assert response.status_code in (200, 422), response.status_code
    assert words in errors_of(response), errors_of(response)
    assert canonical_json(serialize_design(Study.objects.get(pk=study.pk))) == before


@pytest.mark.parametrize("what", ["launch/", "amend/", "close/do/", "nonsense/do/"])
def test_a_study_that_is_not_there_is_not_found(client, study, what):
    assert client.get(f"/admin/studies/study/99999999999999999999/{what}").status_code == 404
