"""Simulated answers to "human or machine?" from a sensitivity and a criterion."""

import numpy as np


def human_like_answers(n_people, n_each, *, d_prime, criterion, n_texts, annotator_sd, text_sd, rng):
    """Return the ratings 1..4 (people, each), the texts (people, each), and whether each text is by a machine."""
    texts = np.arange(n_people * n_each).reshape(n_people, n_each) % n_texts
    is_machine = np.arange(n_texts) % 2 == 1
    evidence = np.where(is_machine[texts], 0.5, -0.5) * d_prime + rng.standard_normal(texts.shape)
    evidence += text_sd * rng.standard_normal(n_texts)[texts] - criterion
    evidence -= annotator_sd * rng.standard_normal((n_people, 1))
    return 1.0 + (evidence > -1) + (evidence > 0) + (evidence > 1), texts, is_machine
