"""The generator of the demo's texts: the shipped file is what it makes, and its programs learn from nothing that they are judged by."""

from itertools import pairwise
from random import Random

import pytest

from heval_site.management.demo_texts import SYSTEMS
from tools.demo_texts.make import (
    HUMAN,
    ORDERS,
    STIMULI_PATH,
    held_out_fables,
    load_fables,
    stimuli_file_bytes,
    training_tokens,
)
from tools.demo_texts.ngrams import (
    CLOSE_QUOTE,
    OPEN_QUOTE,
    SENTENCE_END,
    NGrams,
    detokenise,
    find_proper_names,
    lower_sentence_starts,
    may_follow,
    tokenise,
)
from tools.demo_texts.quality import longest_attested_run, mean_measures_by_system


def test_the_generator_writes_the_shipped_file_to_the_byte():
    assert stimuli_file_bytes() == STIMULI_PATH.read_bytes()


def test_nothing_held_out_is_learned_from():
    corpus = load_fables()
    learned = training_tokens(corpus)
    assert len(learned) == len(corpus) - 24
    for fable in held_out_fables(corpus):
        tokens = tokenise(f"{fable.prompt} {fable.continuation}")
        assert tokens == tokenise(corpus[fable.title])
        assert tokens not in learned
        # Twelve words may be a turn of phrase ("as fast as he could"); more would be the same fable told twice.
        assert longest_attested_run(tokens, learned) <= 12


@pytest.mark.slow
def test_higher_orders_are_closer_to_english_and_only_the_human_keeps_to_the_prompt():
    measured = mean_measures_by_system()
    shares = [measured[system]["attested share"] for system in ORDERS]
    assert all(higher > lower + 0.04 for lower, higher in pairwise(shares))
    surprise = {system: measured[system]["bits a token"] for system in SYSTEMS}
    assert surprise.pop("order-1") > max(surprise.values()) + 0.5
    programs = max(measured[system]["names taken up"] for system in ORDERS)
    assert measured[HUMAN]["names taken up"] > 3 * programs


def test_tokens_keep_sentences_and_quotes_apart_and_are_written_back():
    text = '"Alas!" said he; "I fell. Help me." He ran.'
    assert tokenise(text) == [
        *(OPEN_QUOTE, "Alas", "!", CLOSE_QUOTE, "said", "he", ";", OPEN_QUOTE, "I", "fell", ".", SENTENCE_END),
        *("Help", "me", ".", CLOSE_QUOTE, SENTENCE_END, "He", "ran", ".", SENTENCE_END),
    ]
    # A speech that goes on begins without a capital.
    text = '"If you come," said he, "we will go." They went.'
    assert detokenise(tokenise(text)) == detokenise(lower_sentence_starts(tokenise(text), frozenset())) == text


def test_a_sign_that_is_no_word_and_no_mark_is_refused_with_its_place():
    with pytest.raises(ValueError, match=r"text: '\(' at character 4"):
        tokenise("He (ran).")


def test_names_keep_their_capital_and_beginnings_lose_it():
    texts = [tokenise("The Fox ran. A Fox and the fig fell.")]
    assert find_proper_names(texts) == {"Fox"}
    assert lower_sentence_starts(tokenise("Fox met a Lion. The Lion ran."), find_proper_names(texts))[:2] == [
        "Fox",
        "met",
    ]


@pytest.mark.parametrize(
    ("last", "token", "is_open"),
    [
        ([], ",", False),
        (["he"], SENTENCE_END, False),
        (["he"], OPEN_QUOTE, False),
        (["he", "."], CLOSE_QUOTE, False),
        ([OPEN_QUOTE], ",", True),
    ],
)
def test_typography_refuses(last, token, is_open):
    assert not may_follow(last, token, is_open)


def test_tokens_are_drawn_as_often_as_they_are_probable():
    model = NGrams([tokenise("The fox ran. The fox slept. The lion ran.")], order=2)
    tokens = [*model.counts[()], "unheard"]
    assert sum(model.probability(token, ["The"]) for token in tokens) == pytest.approx(1)
    rng = Random(1)
    drawn = [model.draw_token(["The"], rng) for _ in range(4000)]
    assert drawn.count("fox") / 4000 == pytest.approx(model.probability("fox", ["The"]), abs=0.03)


def test_a_length_that_cannot_be_met_ends_in_words():
    model = NGrams([tokenise("He ran.")], order=3)
    with pytest.raises(RuntimeError, match="words: no continuation of 5 to 5 words"):
        model.continuation([], range(5, 6), True, Random(1), is_welcome=lambda word: False)
