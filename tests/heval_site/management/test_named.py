"""How a command finds the study that it is about."""

from uuid import UUID

import pytest
from django.core.management import CommandError

from heval_site.management.find_study import find_study
from studies.models import Study

pytestmark = pytest.mark.django_db
CODES = ("4be1c09a-0000-4000-8000-000000000001", "4be1c09a-0000-4000-8000-000000000002", "5" * 32)


@pytest.fixture
def studies():
    titles = ("One", "Two", "Two")
    return [Study.objects.create(title=title, code=UUID(code)) for title, code in zip(titles, CODES, strict=True)]


@pytest.mark.parametrize(
    ("name", "which"),
    [("One", 0), (CODES[1], 1), (CODES[1].replace("-", "").upper(), 1), ("5", 2), ("5555-5555", 2)],
)
def test_a_code_its_beginning_and_a_title_name_a_study(studies, name, which):
    assert find_study(name) == studies[which]


def test_a_title_of_digits_goes_before_the_beginning_of_a_code(studies):
    titled = Study.objects.create(title="5")
    assert find_study("5") == titled


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Two", "More than one study matches Two"),
        ("4be1c09a", "More than one"),
        ("4be1c09b", "no study 4be1c09b"),
        ("", "no study"),
        ("\0", "no study"),
        ("5" * 33, "no study"),
        ("Three", "or its title"),
    ],
)
def test_what_names_none_or_several_is_refused(studies, name, said):
    with pytest.raises(CommandError, match=said):
        find_study(name)
