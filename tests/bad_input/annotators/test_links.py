"""A link that names nobody is refused, and it takes no place."""

import pytest

from annotators.models import Annotator, Assignment
from annotators.models.identity import restored_external_ids
from tests.bad_input.annotators.assignments import finished, words_of
from tests.builders import panel

pytestmark = pytest.mark.postgres


LINKS = {
    "no id": ("", "not complete"),
    "empty": ("who=", "not complete"),
    "blank": ("who=%20", "not complete"),
    "zero width": ("who=%E2%80%8B", "not complete"),
    "twice": ("who=a&who=b", "link is not valid"),
    "NUL": ("who=a%00b", "link is not valid"),
    "line break": ("who=a%0D%0ASet-Cookie:x", "link is not valid"),
    "surrogate": ("who=%ED%A0%80", "link is not valid"),
    "no UTF-8": ("who=%FF", "link is not valid"),
    "NUL in another": ("who=a&session=%00", "link is not valid"),
    "another twice": ("who=a&x=1&x=2", "link is not valid"),
    "1,000 characters": ("who=" + "x" * 1000, "longer than 200 characters"),
    "a placeholder": ("who={{person}}", "did not add your id"),
    "markup": ("who=<b>", "did not add your id"),
}


@pytest.mark.parametrize(("query", "said"), LINKS.values(), ids=LINKS)
def test_a_link_that_names_nobody_is_refused_and_takes_no_place(study, client, query, said):
    address = f"/e/{panel(study).key}/?{query}"
    for response in (client.get(address), client.post(address, {"agree": "1", "start": "1"})):
        assert response.status_code == 200 and said in words_of(response)
    assert client.head(address).status_code == 200
    assert not Assignment.objects.exists() and not Annotator.objects.exists()


def test_the_panels_session_with_another_person_is_another_assignment_and_both_are_kept(study, client):
    door = panel(study)
    for person in ("anna", "bert"):
        client.post(f"/e/{door.key}/?who={person}&session=S1", {"agree": "1"})
    first, second = Assignment.objects.order_by("pk")
    assert first.annotator_id != second.annotator_id and first.batch_id != second.batch_id
    for assignment, person in ((first, "anna"), (second, "bert")):
        assert restored_external_ids(assignment) == {"person": person, "session": "S1"}
        assert "cc=C1" in words_of(client.get(f"/p/{finished(assignment).code}/done/"))
    # Whoever comes with another person's id on a page of their own stays who they are.
    assert "Thank you" in words_of(client.get(f"/p/{first.code}/done/?who=bert"))
