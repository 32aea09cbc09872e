"""Ratings: the value of an answer is the score of its output."""

from .base import Scorer


class RatingScorer(Scorer):
    slug = "rating"

    def items_per_prompt(self, settings, n_systems, n_references):
        return n_systems if settings["shown"] == "one" else 1

    def score_answers(self, section, question, answers, shown):
        rows = answers.assign(other=None, is_first=None)
        if (question.scale or {}).get("is_lower_better"):
            rows = rows.assign(value=1 - rows["value"])
        return rows[rows["value"].notna() & rows["system"].notna()]
