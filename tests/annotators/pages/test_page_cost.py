"""What a page may cost: few queries, few bytes, and nothing that grows with what was answered before or with the study."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotators.models import PageVisit
from annotators.pages.record import full_page_state, partial_page_state
from annotators.pages.sequence import get_section_itinerary
from annotators.places import assign
from studies.protocols import REGISTRY, Protocol
from tests.builders import add_rating, draft_study, humanlike_draft, launched, recruitment, spa_study
from tests.players import answered, claimed, sent_from
from tests.samples import sample_draft
from tools.proofs.bench.protocol_pages import bytes_beside_stimuli

pytestmark = pytest.mark.django_db
PAGES = 16


def rating_study(**columns):
    study = draft_study(systems=("alpha", "beta"), prompts=PAGES + 4, instructions="", **columns)
    add_rating(study, position=1, m=PAGES)
    return launched(study)


def costs_of_cycle(client, assignment, number: int) -> tuple[int, int, bytes]:
    """Queries of the page's GET and of its POST, and the page."""
    path = f"/p/{assignment.code}/s1.p{number}/"
    with CaptureQueriesContext(connection) as looking:
        page = client.get(path)
    names = dict(re.findall(r'type="radio" name="([^"]+)" value="([^"]+)"', page.content.decode()))
    with CaptureQueriesContext(connection) as sending:
        assert client.post(path, names | {"go": "1"}).status_code == 302
    return *([len(one) for one in (looking, sending)]), page.content


def test_a_page_asks_few_queries_and_the_last_as_few_as_the_first():
    study = rating_study(target_n=2)
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    costs = [costs_of_cycle(client, assignment, number) for number in range(1, PAGES + 1)]
    looking, sending = ({cost[n] for cost in costs[1:-1]} for n in (0, 1))
    assert len(looking) == len(sending) == 1, costs
    # A savepoint in place of BEGIN and COMMIT counts for two within a test.
    assert looking.pop() <= 4 and sending.pop() <= 7
    assert bytes_beside_stimuli(costs[3][2]) < 14 * 1024


def test_pages_that_follow_from_answers_ask_few_queries_and_the_last_as_few_as_the_first():
    study = launched(humanlike_draft(domains=("news",), instructions="", target_n=2, m=PAGES, texts=PAGES))
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    looking, sending = [], []
    for number in range(1, PAGES + 1):
        for key in (f"s1.p{number}", f"s1.p{number}f"):
            path = f"/p/{assignment.code}/{key}/"
            with CaptureQueriesContext(connection) as seen:
                page = client.get(path).content.decode()
            names = re.findall(r'name="(s1[^"]+)"', page)
            with CaptureQueriesContext(connection) as sent:
                answer = {names[0]: "because of the end" if key.endswith("f") else "1"}
                assert client.post(path, answer | {"go": "1"}).status_code == 302
            looking.append(len(seen))
            sending.append(len(sent))
    assert set(looking[1:]) == {5}, looking  # the first reads the plan, which is kept
    assert len(set(sending[1:-1])) == 1 and sending[1] <= 9, sending


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_every_page_of_every_protocol_asks_few_queries_and_has_few_bytes(slug):
    study = launched(sample_draft(slug, 2, 1))
    client, pages = Client(), 0
    path = f"/p/{claimed(study, 'w', recruitment(study)).code}/"
    path = client.get(path)["Location"]
    while True:
        with CaptureQueriesContext(connection) as looking:
            page = client.get(path).content
        if (answers := sent_from(path)) is None:
            break
        with CaptureQueriesContext(connection) as sending:
            sent = client.post(path, answers)
        assert sent.status_code == 302, sent.content.decode()
        assert len(looking) <= 6 and len(sending) <= 8, (path, [len(looking), len(sending)])
        assert bytes_beside_stimuli(page) < 14 * 1024, path
        path, pages = sent["Location"], pages + 1
    assert pages and path.endswith("/done/")


def test_no_more_is_read_at_a_late_page_than_at_an_early_one():
    study = rating_study(target_n=1)
    assignment = claimed(study, "w")
    for number in range(1, PAGES):
        answered(assignment, f"s1.p{number}")
    late = partial_page_state(assignment, f"s1.p{PAGES}")
    assert len(late.visits) <= 2 and late.is_next(f"s1.p{PAGES}") and not late.answers
    assert not partial_page_state(assignment, "s1.p3").is_next("s1.p3")
    assert late.next_key == full_page_state(assignment).next_key == f"s1.p{PAGES}"


def test_pages_that_depend_on_answers_are_not_fixed(monkeypatch):
    study = rating_study(target_n=1)
    assignment = claimed(study, "w")
    assert get_section_itinerary(assignment).fixed is not None

    def pages(self, section, items, answers):
        every = Protocol.pages(self, section, items, answers)
        return every if answers.get("s1.q1.i1.A") == 5 else every[:2]

    monkeypatch.setattr(type(REGISTRY["rating"]), "pages", pages)
    other = claimed(rating_study(target_n=1), "w")
    assert get_section_itinerary(other).fixed is None
    assert answered(other, "s1.p1", **{"s1.q1.i1.A": "5"}).next_key == "s1.p2"
    assert len(full_page_state(other).steps) == PAGES


def test_the_layout_that_was_chosen_stays_chosen():
    study = rating_study(target_n=1)
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    client.get(f"/p/{assignment.code}/s1.p1/")
    client.post(f"/p/{assignment.code}/s1.p1/", {"layout": "one"})
    for number in (1, 2, 3):
        costs_of_cycle(client, assignment, number)
    assert set(PageVisit.objects.filter(assignment=assignment).values_list("layout", flat=True)) == {"one"}
    assert 'class="items one"' in client.get(f"/p/{assignment.code}/s1.p4/").content.decode()


@pytest.mark.only_on("sqlite")  # its machine tells its steps
def test_a_claim_does_not_look_at_every_item_of_every_batch():
    study = spa_study(target_n=60, prompts=30, m=20)
    for person in "abc":
        claimed(study, person)
    steps = []
    connection.connection.set_progress_handler(lambda: steps.append(1) and None, 1000)
    try:
        assert assign.claim_batch(study, assign.get_or_create_annotator("panel", "d")).outcome == "claimed"
    finally:
        connection.connection.set_progress_handler(None, 0)
    assert len(steps) < 60, f"{len(steps)},000 steps"
