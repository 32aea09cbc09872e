"""What a program notices in explanations, to help reviewers."""

import pytest

from analysis.coding.hints import flag_nearly_but_not_identical_texts, reviewer_hints, reviewer_hints_by_row

pytestmark = pytest.mark.django_db
# Hints

TEXT = "Once upon a time there was a king who had three daughters and a very old horse in the yard."


@pytest.mark.parametrize(
    "said, others, found",
    [
        ("there was a king who had three daughters and", {}, ("copied",)),
        ("There was a KING, who had three daughters: and", {}, ("copied",)),
        ("there was a king who had three daughters and that is why I think a person wrote it", {}, ()),
        ("good", {}, ("short",)),
        ("very good!", {}, ("short",)),
        ("n/a", {}, ("short",)),
        ("it ends well", {}, ()),
        ("it ends well", {"it ends well": 2}, ("duplicate",)),
        ("it ends well", {"it ends well": 1}, ()),
        ("", {}, ("short",)),
    ],
)
def test_what_a_program_notices(said, others, found):
    assert reviewer_hints(said, [TEXT], others) == found


def test_the_same_words_of_one_person_are_no_duplicate():
    rows = [
        (1, "", "it ends well"),
        (1, "", "It ends well."),
        (2, "", "it ENDS well!"),
        (3, "", "it ends well"),
        (4, "", "other words here"),
    ]
    assert reviewer_hints_by_row(rows, {}) == [("duplicate",)] * 4 + [()]


LONG = [
    "the",
    "ending",
    "did",
    "not",
    "follow",
    "from",
    "what",
    "came",
    "before",
    "and",
    "nobody",
    "in",
    "it",
    "ever",
    "said",
    "why",
]


def test_what_others_wrote_nearly_the_same_is_noticed_above_the_declared_share():
    """LONG has 16 words and 12 runs of five. A word changed at place p breaks the runs that hold it."""

    def changed(*places):
        return " ".join("other" if n in places else word for n, word in enumerate(LONG))

    whole = " ".join(LONG)
    # One word in the middle breaks 5 of 12 runs: 7 of 12 are shared, above one half. Two words far apart break 10.
    assert flag_nearly_but_not_identical_texts([(1, whole), (2, changed(7))]) == [True, True]
    assert flag_nearly_but_not_identical_texts([(1, whole), (2, changed(5, 10))]) == [False, False]
    # At one half exactly (a word at place 5 and its neighbour: 6 broken runs of 12) it is not above it.
    assert flag_nearly_but_not_identical_texts([(1, whole), (2, changed(5, 6))]) == [False, False]
    # One's own words, word for word the same, and what is too short to say: not this flag's.
    assert flag_nearly_but_not_identical_texts([(1, whole), (1, changed(7))]) == [False, False]
    assert flag_nearly_but_not_identical_texts([(1, whole), (2, whole.upper())]) == [False, False]
    assert flag_nearly_but_not_identical_texts([(1, "a b c d e f"), (2, "a b c d e g")]) == [False, False]
    # A short one that is a whole part of a long one.
    assert flag_nearly_but_not_identical_texts([(1, " ".join(LONG[:9])), (2, whole)]) == [True, False]
    assert reviewer_hints_by_row([(1, "", whole), (2, "", changed(7))], {}) == [("near_duplicate",)] * 2
    # A text that a whole crowd passed on is noticed, however many pass it on.
    crowd = [(n, f"{whole} {n}") for n in range(120)]
    assert all(flag_nearly_but_not_identical_texts(crowd))
