"""A walk through the pages of annotators, in as many states as there are, finds no word of another language than the study's."""

import pytest

from studies.language.catalogues import message_template
from tests.annotators.language import walks_elsewhere, walks_of_ends, walks_of_entry, walks_of_work  # noqa: F401 - they register their walks
from tests.annotators.language.seen import Seen
from tests.annotators.language.walking import WALKS, walk_all

pytestmark = pytest.mark.django_db
# What no walk can see, and why.
UNSEEN = {
    "Your work is not rejected, so you do not need to object.": "The rejection is taken back while the objection is sent.",
    "Your work did not end because of wrong answers, so you do not need to object.": "The same, of an end that is changed.",
    "Please answer this question.": "Every kind of field that there is has words of its own.",
    "%(field)s: contains half of a surrogate pair (%(code)s), which is not a character, at character %(position)s. Remove it.": (
        "No form that a browser sends contains one."
    ),
}


@pytest.fixture(scope="module")
def seen(module_transaction, tmp_path_factory):
    seen, media = Seen(), tmp_path_factory.mktemp("media")
    with pytest.MonkeyPatch.context() as monkeypatch:
        from django.conf import settings

        monkeypatch.setattr(settings, "MEDIA_ROOT", media)
        walk_all(seen, monkeypatch, media=media)
    return seen


def test_no_page_has_a_word_in_latin_letters(seen):
    faults = [f"{where}: {found}" for where, words in seen.faults.items() for found in dict.fromkeys(words)]
    assert not faults, "\n".join(["These words of pages are no messages:", *faults[:50]])


def test_every_message_was_on_a_page(seen):
    unseen = seen.unseen(message_template())
    missed = [message for message in unseen if message not in UNSEEN]
    assert not missed, "\n".join([f"No page of {len(WALKS)} walks ({seen.pages} pages) shows:", *missed])
    assert set(UNSEEN) == set(unseen), "Take out of UNSEEN what pages show."
