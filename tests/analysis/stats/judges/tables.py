"""Rows of labels that the tests of judges share."""

import numpy as np

from tests.analysis.stats.draws import rng


def rows(seed=0, n_people=9, n_prompts=14, n_systems=3, accuracy=0.75):
    """Labels of people with effects of prompts and people, and those of a judge that knows part of the truth."""
    draw = rng(seed)
    people, prompts, systems = (axis.ravel() for axis in np.indices((n_people, n_prompts, n_systems)))
    quality = draw.normal(0, 1, (n_prompts, n_systems)) + draw.normal(0, 0.5, n_prompts)[:, None]
    taste = draw.normal(0, 0.5, n_people)[people] + draw.normal(0, 0.7, len(people))
    is_good = (quality[prompts, systems] + taste > 0).astype(int)
    is_right = draw.random((n_prompts, n_systems)) < accuracy
    judge = np.where(is_right, quality > 0, quality <= 0).astype(int)[prompts, systems]
    weights = draw.choice([1.0, 2.5, 4.0], (n_prompts, n_systems))[prompts, systems]
    return {
        "judge": judge,
        "people": is_good,
        "annotators": people,
        "prompts": prompts,
        "systems": systems,
        "weights": weights,
        "items": prompts * n_systems + systems,
    }


def table(made):
    """The same labels as items by people, with the judge's label and the prompt of each item."""
    n_items, n_people = made["items"].max() + 1, made["annotators"].max() + 1
    labels, judge, prompts = np.full((n_items, n_people), np.nan), np.empty(n_items), np.empty(n_items, dtype=int)
    labels[made["items"], made["annotators"]] = made["people"]
    judge[made["items"]], prompts[made["items"]] = made["judge"], made["prompts"]
    return labels, judge, prompts
