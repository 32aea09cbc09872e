"""On a small phone what is not read takes little room, what is read is large enough, and what is pressed can be hit."""

import pytest

from tests.annotators.views.heights import HEIGHTS, MOST, SMALL_PHONE, STUDIES, TOO_SMALL
from tests.annotators.views.touching import pages_of
from tests.browsing import overflow
from tests.builders import launched
from tests.players import claimed

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def study(request, db):
    return launched(STUDIES[request.param]())


# One is enough where the time counts: all have the same styles.
EVERY_STUDY = [pytest.param(name, marks=() if "lines" in name else pytest.mark.slow) for name in STUDIES]


@pytest.mark.parametrize("study", EVERY_STUDY, indirect=True)
def test_what_is_not_read_takes_little_room(visit, study, request):
    person, wrong = visit(viewport=SMALL_PHONE, has_touch=True, is_mobile=True), []
    for key in pages_of(person.page, person.base, claimed(study, "phone")):
        heights = person.page.evaluate(HEIGHTS)
        rest, sends_at = heights["page"] - heights["read"], heights["send"]
        name = f"{request.node.callspec.params['study']} {key}"
        most, send_by = MOST[name]
        wrong += [f"{key}: {rest} px are not read, of at most {most}"] * (rest > most)
        wrong += [f"{key}: Send ends at {sends_at} px"] * bool(send_by and sends_at > send_by)
        wrong += [f"{key}, {one}" for one in person.page.evaluate(TOO_SMALL)]
        wrong += [f"{key} is {overflow(person.page)} px too wide"] * (overflow(person.page) > 0)
    assert not wrong and not person.complaints, "\n".join(wrong)
