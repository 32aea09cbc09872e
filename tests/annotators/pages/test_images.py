"""The note of images that were not seen: how it is read, stored once with its page, exported, counted and deleted."""

import json
import re

import pytest

from analysis.data.export_codebook import build_export_codebook
from analysis.data.exports import jsonl_blocks_with_summary_line
from analysis.data.flat_rows import TIME_COLUMNS, Selection, assignment_row_chunks
from analysis.report.build import build_report
from annotators.models import Assignment, Response
from annotators.pages.record import ConflictingAnswers, full_page_state, record_page_answers
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Study
from studies.protocols import REGISTRY
from tests.builders import launched
from tests.illustrated import illustrated
from tests.players import form
from tests.robots import Page

from .sender import Sender

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def study(tmp_path, settings) -> Study:
    settings.MEDIA_ROOT = tmp_path
    return launched(illustrated("rating", tmp_path, m=3, target_n=2))


def test_the_note_is_stored_with_its_page_on_the_first_on_the_usual_and_on_the_last(study):
    """The usual page is stored without being read before; one with a note is not, and is stored all the same."""
    one = Sender(study)
    keys = list(full_page_state(one.assignment).sequence.keys)
    assert len(keys) == 3
    for key in keys:
        place = int(key[-1])
        assert one.send(**{f"unseen.i{place}.B": "1", f"unseen.i{place}": "1"}).status_code == 302
        # In the order in which the page shows them, whatever the order in which they were sent.
        assert one.visit(key).unseen == f"i{place};i{place}.B" and one.visit(key).recorded_at
        assert Response.objects.filter(assignment=one.assignment, slot__contains=f".i{place}.").count() == 2
    assert Assignment.objects.get(pk=one.assignment.pk).submitted_at
    two = Sender(study, "bert")
    for _ in keys:
        assert two.send().status_code == 302
    assert {visit.unseen for visit in two.assignment.visits.all()} == {""}


@pytest.mark.parametrize(
    "fields",
    [
        {"unseen.i1.C": "1"},
        {"unseen.i2.A": "1"},
        {"unseen.": "1"},
        {"unseen.s1.q1": "1"},
        {"unseen.i1.a": "1"},
        {"unseen.i1.A": "2"},
        {"unseen.i1.A": ""},
        {"unseen.i1.A": ["1", "1"]},
        {"unseen.i1.A\x00": "1"},
        {"unseen." + "i" * 100: "1"},
    ],
)
def test_a_name_that_the_page_does_not_show_is_refused_clearly_and_the_rest_is_kept(study, fields):
    one = Sender(study)
    key = one.key
    refused = one.send(**{"unseen.i1.B": "1"}, **fields)
    html = refused.content.decode()
    assert refused.status_code == 422 and "This page does not show the image unseen." in html
    assert not one.visit(key).recorded_at and not Response.objects.exists()
    # What could be read is there again: the tick and the answers.
    assert 'name="unseen.i1.B" value="1" id="unseen-i1-B" checked' in html
    assert html.count(" checked") == 1 + sum(name.startswith("s") for name in one.sent)


def test_an_output_of_words_is_no_image(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    marks = Sender(launched(illustrated("marks", tmp_path, m=1, target_n=1)))
    assert marks.send(**{"unseen.i1.A": "1"}).status_code == 422
    assert marks.send(**{"unseen.i1": "1"}).status_code == 302


def test_a_tick_is_kept_in_the_draft_and_with_a_page_that_is_refused(study):
    one = Sender(study)
    key = one.key
    assert one.send(answers=False, **{"unseen.i1.A": "1"}).status_code == 422
    path = f"/p/{one.assignment.code}/{key}/"
    one.client.post(path, {"unseen.i1": "1", "save": "auto"})
    html = one.client.get(path).content.decode()
    assert html.count(" checked") == 1 and 'id="unseen-i1" checked' in html
    assert one.visit(key).unseen == ""


def test_the_same_page_again_changes_no_note_and_other_answers_are_refused(study):
    one = Sender(study)
    key = one.key
    one.send(**{"unseen.i1.A": "1"})
    first = {name: value for name, value in one.sent.items() if name != "go"}
    again = record_page_answers(
        Assignment.objects.select_related("study").get(pk=one.assignment.pk), key, form(**first)
    )
    assert again.next_key == one.key
    record_page_answers(
        Assignment.objects.select_related("study").get(pk=one.assignment.pk), key, form(**first | {"unseen.i1.B": "1"})
    )
    assert one.visit(key).unseen == "i1.A"
    slot = next(name for name in first if name.startswith("s"))
    with pytest.raises(ConflictingAnswers):
        record_page_answers(
            Assignment.objects.select_related("study").get(pk=one.assignment.pk), key, form(**first | {slot: "5"})
        )
    recorded = one.client.get(f"/p/{one.assignment.code}/{key}/").content.decode()
    assert recorded.count("You said that you could not see this image.") == 1 and "unseen-i1" not in recorded


def test_the_note_is_in_every_export_and_in_the_codebook_and_a_notice_counts_the_pages(study):
    one, two = Sender(study), Sender(study, "bert")
    for place in (1, 2, 3):
        one.send(**({f"unseen.i{place}.A": "1", f"unseen.i{place}": "1"} if place != 2 else {}))
        two.send()
    (first, second) = next(assignment_row_chunks(Selection(study)))
    keys = list(full_page_state(one.assignment).sequence.keys)
    unseen = [column.name for column in TIME_COLUMNS].index("unseen")
    assert first.times[unseen] == f"{keys[0]}:i1;{keys[0]}:i1.A;{keys[2]}:i3;{keys[2]}:i3.A"
    assert second.times[unseen] is None
    for table in ("responses", "assignments"):
        (column,) = (one for one in build_export_codebook(study)["tables"][table] if one["name"] == "unseen")
        assert "i2.A" in column["meaning"]
    rows = [
        json.loads(line)
        for line in b"".join(jsonl_blocks_with_summary_line("responses", Selection(study))).decode().splitlines()[:-1]
    ]
    mine = {row["page"]: row["unseen"] for row in rows if row["unseen"]}
    assert mine == {keys[0]: "i1;i1.A", keys[2]: "i3;i3.A"}
    notices = {notice["code"]: notice["text"] for notice in build_report(study, {"resamples": 99})["notices"]}
    assert notices["unseen"].startswith(
        "2 pages were answered by annotators who reported an unseen image (1 submitted assignment)."
    )


@pytest.mark.parametrize("blanks", [False, True])
def test_a_withdrawal_deletes_the_note_where_it_deletes_ratings(tmp_path, settings, blanks):
    settings.MEDIA_ROOT = tmp_path
    draft = illustrated("rating", tmp_path, m=2, target_n=1)
    Study.objects.filter(pk=draft.pk).update(withdrawal_blanks_ratings=blanks)
    one = Sender(launched(Study.objects.get(pk=draft.pk)))
    key = one.key
    one.send(**{"unseen.i1.A": "1"})
    withdraw_annotator_and_erase_texts(Assignment.objects.select_related("study").get(pk=one.assignment.pk))
    assert one.visit(key).unseen == ("" if blanks else "i1.A")


@pytest.mark.parametrize("slug", sorted(REGISTRY))
def test_what_an_image_is_called_tells_nothing_and_images_are_kept_by_the_browser_alone(slug, tmp_path, settings):
    """Names are places and letters of the page; an address is of one assignment, may be kept, and may be asked for again."""
    settings.MEDIA_ROOT = tmp_path
    draft = illustrated(slug, tmp_path, m=1, target_n=1)
    if draft is None:
        return
    one = Sender(launched(draft))
    html = one.client.get(f"/p/{one.assignment.code}/{one.key}/").content.decode()
    page = Page(html)
    named = [name for name in page.forms[0].fields if name.startswith("unseen.")]
    assert named and all(re.fullmatch(r"unseen\.i[0-9]+(\.[A-Z]+)?", name) for name in named)
    assert 'images.js"' in html and 'images.css"' in html
    source = re.search(r'<img src="([^"]+)"', html)[1]
    first, again = one.client.get(source), one.client.get(source + "?again=1")
    assert first.content == again.content and first["Content-Type"] == "image/webp"
    assert first["Cache-Control"] == "private, max-age=86400, immutable"
