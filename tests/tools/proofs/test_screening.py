"""The simulation of people who answer at random: what it counts, and that a small one finds them."""

import random

import pytest

from analysis.exclusions.rules.checks import MODEL_CHOICES
from tools.proofs.calibration import screening
from tools.proofs.calibration.screening import (
    BUCKETS,
    NAMES,
    Person,
    numbers_of_batches,
    simulate_study,
    summary,
    table,
)


def test_people_are_counted_by_their_number_of_answers():
    people = [
        Person(True, 4, frozenset({"default"})),
        Person(False, 4, frozenset({"default"})),
        Person(True, 4, frozenset()),
        Person(True, 5, frozenset({"rate_fixed2"})),
        Person(False, 15, frozenset()),
    ]
    rows = {(row["model"], row["bucket"]): row for row in summary(people)}
    assert rows["default", "1-4"] == {
        "model": "default", "bucket": "1-4", "people": 3, "noisy": 2, "flagged": 2, "right": 1,
    }  # fmt: skip
    lines = table(list(rows.values()))
    assert len(lines) == 2 + len(NAMES)
    (default,) = [line for line in lines if "`default`" in line]
    assert default == "| `default` | 50 / 50 |  | – / 0 |  | – / – |  |"
    assert any("100 / 100 | 100 / 100" in line for line in lines if "`rate_fixed2`" in line)


def test_the_table_has_every_model_of_the_rule():
    assert set(NAMES) == {value for value, _ in MODEL_CHOICES} | {screening.SIMPLE}


def test_the_numbers_of_batches_fill_all_buckets():
    numbers = [2 * n for n in numbers_of_batches(random.Random(1), 500)]
    assert numbers == sorted(numbers, reverse=True)
    for bucket in BUCKETS.values():
        assert sum(n in bucket for n in numbers) >= 50


def test_the_stored_table_flags_few_careful_people():
    rows = screening.stored_record()["rows"]
    by_default = [row for row in rows if row["model"] == screening.DEFAULT]
    wrongly = sum(row["flagged"] - row["right"] for row in by_default)
    careful = sum(row["people"] - row["noisy"] for row in by_default)
    assert wrongly <= 0.01 * careful
    most = by_default[-1]
    assert most["bucket"] == "15+" and most["right"] >= 0.7 * most["noisy"] > 0


@pytest.mark.slow
@pytest.mark.django_db
def test_a_small_study_flags_no_careful_person():
    people = simulate_study(1, people=30)
    assert len(people) >= 28 and any(person.is_noisy for person in people)
    assert not any("default" in person.flagged_by for person in people if not person.is_noisy)
