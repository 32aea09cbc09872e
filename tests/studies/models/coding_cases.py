"""Rows of codings and tokens that the database must refuse, by constraint."""

from analysis.models import ApiToken, Coding, CodingItem, CodingSample, CodingSeat
from annotators.models import Assignment
from tests.builders import user
from tests.studies.models.rows import other

CODING_AND_TOKEN_CASES = {
    "coding_sample_number_once_per_study": lambda w: CodingSample(number=1, **w["sampled"]),
    "coding_sample_takes_somebody_of_each_arm": lambda w: CodingSample(number=2, **w["sampled"] | {"per_arm": 0}),
    "coding_sample_is_of_a_known_kind": lambda w: CodingSample(number=2, **w["sampled"] | {"kind": "other"}),
    "coding_sample_has_a_known_rule": lambda w: CodingSample(number=2, **w["sampled"] | {"rule": "other"}),
    "coding_seat_number_once_per_sample": lambda w: CodingSeat(sample=w["sample"], number=1, user=user("another")),
    "coding_seat_once_per_person": lambda w: CodingSeat(sample=w["sample"], number=2, user=w["researcher"]),
    "coding_seat_is_one_of_three": lambda w: CodingSeat(sample=w["sample"], number=4, user=user("another")),
    "coding_item_number_once_per_sample": lambda w: (
        other(w).save() or CodingItem(sample=w["sample"], number=1, assignment=Assignment.objects.last())
    ),
    "coding_item_once_per_annotator": lambda w: CodingItem(sample=w["sample"], number=2, assignment=w["assignment"]),
    "coding_revision_once_per_item_and_coder": lambda w: Coding(item=w["coded"], coder=w["researcher"], is_none=True),
    "coding_gives_labels_or_says_that_none_applies": lambda w: Coding(
        item=w["coded"], coder=w["researcher"], revision=2
    ),
    "api_token_hash_once": lambda w: ApiToken(user=w["researcher"], name="t", hash="h"),
    "api_token_is_hashed": lambda w: ApiToken(user=w["researcher"], name="t", hash=""),
}
