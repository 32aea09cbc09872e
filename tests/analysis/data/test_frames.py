"""Frames: one query, one order, numbers in 0..1, and no row that can stop them."""

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.data.frames import assignments_frame, cluster_labels, frame_sha256, responses_frame, with_plain_texts
from analysis.data.snapshot import database_snapshot
from analysis.protocols.kinds.answers import column_arrays, join_columns
from analysis.protocols.kinds.scores import wide_scores
from annotators.models import Assignment, Response
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from tests.analysis.protocols.answers import answer
from tests.builders import spa_study
from tests.players import submitted

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def study():
    return spa_study(target_n=4)


def test_an_answer_keeps_its_meaning_and_lies_in_0_to_1(study):
    assignment = submitted(study, "a", comment="thank you")
    frame = responses_frame(study).rows
    assert len(frame) == Response.objects.filter(assignment=assignment).count()
    for stored in Response.objects.filter(assignment=assignment).select_related(
        "question__x", "exposure__output__system"
    ):
        row = frame[frame["slot"] == stored.slot].iloc[0]
        assert row["question"] == stored.question.key and row["label"] == stored.label
        if stored.question.x_id:
            assert (row["x"], row["y"]) == (stored.question.x.name, stored.question.y.name)
            assert row["value"] == pytest.approx(float(stored.value) / 100)
        if stored.exposure_id:
            assert row["system"] == stored.exposure.output.system.name
            assert row["value"] == pytest.approx((float(stored.value) - 1) / 4)
    assert frame.loc[frame["question"] == "comment", "text"].tolist() == ["thank you"]
    assert frame["value"].dropna().between(0, 1).all()


def test_asked_first_is_the_direction_that_stood_first(study):
    submitted(study, "a")
    frame = responses_frame(study).rows
    directed = frame[frame["x"].notna()]
    for _, row in directed.iterrows():
        reverse = directed[(directed["x"] == row["y"]) & (directed["y"] == row["x"])].iloc[0]
        assert row["asked_first"] == (row["position"] < reverse["position"])
    assert frame.loc[frame["x"].isna(), "asked_first"].isna().all()
    first = directed.sort_values("position").iloc[0]
    assert assignments_frame(study).rows["first_asked"].tolist() == [first["question"]]


def test_frames_take_as_many_queries_whatever_the_number_of_their_rows(study):
    def queries():
        with CaptureQueriesContext(
            connection,
        ) as seen:
            responses_frame(study)
            assignments_frame(study)
        return len(seen)

    submitted(study, "a")
    before = queries()
    submitted(study, "b")
    submitted(study, "c")
    assert queries() == before <= 10


def test_the_hash_depends_on_answers_and_not_on_row_numbers(study):
    answer(study, 3, percent=lambda person, x, y: 60 + person)
    frame = responses_frame(study).rows
    shuffled = frame.sample(frac=1, random_state=3)
    renumbered = frame.assign(id=frame["id"] + 1000, assignment=frame["assignment"] + 7)
    assert frame_sha256(shuffled) == frame_sha256(renumbered) == frame_sha256(frame)
    changed = frame.copy()
    changed.loc[0, "value"] = 0.123
    assert frame_sha256(changed) != frame_sha256(frame)
    # A file without times gives its answers the time of the import.
    later = frame.assign(received_at=frame["received_at"] + timedelta(hours=1))
    assert frame_sha256(later) != frame_sha256(frame)
    assert frame_sha256(later.assign(origin="imported")) == frame_sha256(frame.assign(origin="imported"))


def test_texts_are_categories_that_can_be_compared(study):
    answer(study, 2)
    frame = responses_frame(study).rows
    assert not (frame["x"] == frame["y"]).any() and not (frame["system"] == frame["x"]).any()
    assert frame["annotator"].cat.categories.is_monotonic_increasing
    plain = with_plain_texts(frame)
    assert not len(plain.select_dtypes("category").columns) and frame_sha256(plain) == frame_sha256(frame)


def test_only_the_origins_asked_for_are_there(study):
    answer(study, 1)
    answer(study, 2, origin="robot")
    assert responses_frame(study).rows["assignment"].nunique() == 1
    assert responses_frame(study, ("robot", "live")).rows["assignment"].nunique() == 3
    with pytest.raises(ValueError, match="origins: 'android'"):
        responses_frame(study, ("android",))


def test_who_withdrew_is_left_out_and_counted(study):
    submitted(study, "a")
    withdraw_annotator_and_erase_texts(submitted(study, "b"))
    assert responses_frame(study).rows["annotator"].nunique() == 1
    frame = assignments_frame(study)
    assert len(frame.rows) == 1 and frame.n_withdrawn == 1


def test_annotators_have_another_name_in_each_study(study):
    other = spa_study(target_n=2)
    submitted(study, "a")
    submitted(other, "a")
    first, second = responses_frame(study).rows["annotator"], responses_frame(other).rows["annotator"]
    assert Assignment.objects.values("annotator").distinct().count() == 1
    assert not set(first) & set(second)


def poison(column, value):
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE annotators_response SET {column} = {value} WHERE id = (SELECT min(id) FROM annotators_response WHERE value IS NOT NULL)"
        )


HOSTILE = [
    ("value", "9e999"), ("value", "-9e999"), ("value", "'abc'"), ("value", "'NaN'"), ("value", "101"), ("value", "-1"),
    ("value", "''"), ("value", "x'ff00fe'"), ("received_at", "'yesterday'"), ("received_at", "'9999-99-99 99:99'"), ("received_at", "''"),
    ("text", "x'fffe41'"), ("text", "replace(hex(zeroblob(500000)), '0', 'é')"), ("choice", "x'c328'"), ("label", "'‮⁦'"),
]  # fmt: skip


@pytest.mark.only_on("sqlite")  # PostgreSQL's columns refuse these values themselves
@pytest.mark.parametrize(("column", "value"), HOSTILE)
def test_a_hostile_value_loses_its_row_alone(study, column, value):
    answer(study, 2, percent=lambda person, x, y: 60)
    whole = responses_frame(study).rows
    poison(column, value)
    with database_snapshot():
        read = responses_frame(study)
        frame = read.rows
        frame_sha256(frame)
    assert len(frame) == len(whole)
    lost = int(frame["value"].isna().sum() - whole["value"].isna().sum())
    assert lost == (1 if column == "value" else 0)
    if column in ("value", "received_at"):
        assert [problem["column"] for problem in read.problems] == [column]


def test_an_answer_to_another_studys_question_is_listed_and_left_out(study):
    answer(study, 2)
    other = spa_study(target_n=2)
    foreign = other.sections.get(protocol="spa").questions.first()
    Response.objects.bulk_create(
        [Response(assignment=study.assignments.first(), question=foreign, slot="s9.q9", value=Decimal(40))]
    )
    read = responses_frame(study)
    assert "s9.q9" not in set(read.rows["slot"])
    assert len(read.problems) == 1 and "belongs to another study" in read.problems[0]["text"]


def test_statistics_get_numbers_of_people_and_prompts_in_the_order_of_their_names(study):
    for person in "bac":
        submitted(study, person)
    rows = responses_frame(study).rows
    rated = rows[rows["system"].notna() & rows["value"].notna()]
    people = rated["annotator"].astype(str).to_numpy()
    numbers = cluster_labels(rated["annotator"])
    names = rows["annotator"].cat.categories
    assert numbers.dtype == np.int64 and names[numbers].tolist() == people.tolist()
    # Also in a table with a row for each person and prompt, and a column for each system.
    wide = wide_scores(rated.assign(rating=rated["value"]), "rating").reset_index()
    assert names[column_arrays(wide, "annotator")[0]].tolist() == wide["annotator"].tolist()
    assert cluster_labels(wide.set_index("annotator").index).tolist() == cluster_labels(wide["annotator"]).tolist()
    # Labels that are missing stay so: questions about a pair of systems have no single one.
    assert None in {label if isinstance(label, str) else None for label in cluster_labels(rows["system"])}


def test_columns_are_joined_in_the_order_of_their_texts(study):
    submitted(study, "a")
    rows = responses_frame(study).rows
    rows = rows[rows["system"].notna()]
    joined = join_columns(rows, "question", "system", "sample")
    texts = [
        "\x1f".join(map(str, cells)) for cells in zip(rows["question"], rows["system"], rows["sample"], strict=True)
    ]
    assert joined.tolist() == texts and joined.cat.categories.tolist() == sorted(set(texts))
    assert joined.index.equals(rows.index)
