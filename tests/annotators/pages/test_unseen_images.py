"""A ticked "I cannot see this image" answers the questions about this image, and no other question: on a page of each protocol."""

import pytest

from annotators.counting import UNSEEN
from annotators.models import Response
from annotators.pages.record import full_page_state
from studies.protocols import REGISTRY
from tests.builders import launched
from tests.illustrated import illustrated

from .sender import Sender

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
# Stated chances are about whole systems, so no question is about an image.
ABOUT_SYSTEMS = {"spa"}
WITH_ITEMS = sorted(slug for slug, protocol in REGISTRY.items() if protocol.has_items and slug not in ABOUT_SYSTEMS)
# Marks are made in words, so only the prompt has an image.
IMAGES = [
    (slug, image) for slug in WITH_ITEMS for image in ("prompt", "output") if (slug, image) != ("marks", "output")
]


def sender(slug, tmp_path, settings) -> Sender:
    settings.MEDIA_ROOT = tmp_path
    return Sender(launched(illustrated(slug, tmp_path, m=2, target_n=2)))


def shown(one: Sender):
    """The next page with its fields and the names of its images."""
    from annotators.pages.form_data import page_image_names
    from annotators.places.batch_plan import get_batch_plan

    step = full_page_state(one.assignment).steps[one.key]
    return step, step.page_fields(), page_image_names(step.page, get_batch_plan(one.assignment).images)


def asks_of(one: Sender) -> list[str]:
    """The keys of the pages with questions about items, in their order."""
    state = full_page_state(one.assignment)
    return [key for key in state.sequence.keys if any(f.item_id for f in state.steps[key].page_fields().values())]


def until_asked(one: Sender) -> None:
    while one.key not in asks_of(one):
        assert one.send().status_code == 302


def stored(one: Sender, key: str) -> dict[str, Response]:
    state = full_page_state(one.assignment)
    return {row.slot: row for row in Response.objects.filter(slot__in=list(state.steps[key].page_fields()))}


@pytest.mark.parametrize("slug", WITH_ITEMS)
def test_who_ticks_every_image_needs_no_answer(slug, tmp_path, settings):
    one = sender(slug, tmp_path, settings)
    assert asks_of(one)
    until_asked(one)
    key, (_, asks, names) = one.key, shown(one)
    assert one.send(answers=False, **{f"unseen.{name}": "1" for name in names}).status_code == 302
    rows = stored(one, key)
    assert rows and {(row.skip_reason, row.value, row.chosen_id, row.text) for row in rows.values()} == {
        (UNSEEN, None, None, "")
    }
    asked = {(ask.question_id, ask.exposure_id) for ask in asks.values() if ask.item_id}
    assert {(row.question_id, row.exposure_id) for row in rows.values()} == asked
    # The stored page is shown again, and the same form changes nothing.
    assert one.client.get(f"/p/{one.assignment.code}/{key}/").status_code == 200
    assert one.client.post(f"/p/{one.assignment.code}/{key}/", one.sent).status_code == 302
    assert len(stored(one, key)) == len(rows)


@pytest.mark.parametrize(("slug", "image"), IMAGES)
def test_an_image_frees_only_the_questions_about_it(slug, image, tmp_path, settings):
    one = sender(slug, tmp_path, settings)
    assert asks_of(one)
    until_asked(one)
    step, asks, names = shown(one)
    name = next((name for name in names if ("." in name) == (image == "output")), None)
    assert name
    only_one_output = image == "output" and step.protocol.asks_about_single_outputs
    others = {
        slot
        for slot, ask in asks.items()
        if ask.item_id is None or (only_one_output and ask.label != name.partition(".")[2])
    }
    needed = {slot for slot in others if getattr(asks[slot].field, "required", False)}
    refused = one.send(answers=False, **{f"unseen.{name}": "1"})
    assert refused.status_code == (422 if needed else 302), refused.content.decode()[-2000:]
    if needed:
        html = refused.content.decode()
        assert all(f'id="{slot.replace(".", "-")}-e"' in html for slot in needed)
        assert not any(f'id="{slot.replace(".", "-")}-e"' in html for slot in asks.keys() - others)


@pytest.mark.parametrize("slug", WITH_ITEMS)
def test_an_answer_that_was_given_beside_the_tick_is_kept(slug, tmp_path, settings):
    one = sender(slug, tmp_path, settings)
    assert asks_of(one)
    until_asked(one)
    key, (_, _, names) = one.key, shown(one)
    assert one.send(**{f"unseen.{name}": "1" for name in names}).status_code == 302
    rows = stored(one, key)
    assert rows and UNSEEN not in {row.skip_reason for row in rows.values()}
    assert one.visit(key).unseen == ";".join(names)


def test_a_ranking_with_one_unseen_output_is_left_out_as_a_whole(tmp_path, settings):
    one = sender("ranking", tmp_path, settings)
    key, (_, asks, _) = one.key, shown(one)
    first, *others = asks
    places = {slot: str(place) for place, slot in enumerate(others, 1)}
    name = f"i1.{asks[first].label}"
    assert one.send(answers=False, **places, **{f"unseen.{name}": "1"}).status_code == 302
    assert {row.skip_reason for row in stored(one, key).values()} == {UNSEEN} and len(stored(one, key)) == len(asks)


def test_without_a_tick_nobody_can_send_this_reason(tmp_path, settings):
    one = sender("two_choice", tmp_path, settings)
    (slot,) = shown(one)[1]
    assert one.send(answers=False, **{f"{slot}.skip": UNSEEN}).status_code == 422
    assert not Response.objects.exists()
