"""Error marks: an output without an error scores 1, and one with the highest possible penalty 0. Its score from 0 to 100 counts as given."""

from studies.protocols import REGISTRY
from studies.protocols.marks import ERRORS, SCORE

from .base import Scorer


class MarksScorer(Scorer):
    slug = "marks"

    def is_scored(self, question):
        return question.key in (ERRORS, SCORE)

    def describe_scores(self, section, question):
        if question.key != ERRORS:
            return ""
        most = highest_penalty(section)
        return f"An output without an error gets the highest score, and one with the penalty {most:g} the lowest: the most errors that annotators can mark, all of the heaviest level."

    def items_per_prompt(self, settings, n_systems, n_references):
        return 1

    def score_answers(self, section, question, answers, shown):
        from analysis.protocols.marks import OUTPUT_KEY, read_judged_outputs

        answers = answers[answers["system"].notna() & answers["value"].notna()]
        if question.key == ERRORS and len(answers):
            penalties = read_judged_outputs(answers, section).outputs[[*OUTPUT_KEY, "penalty"]]
            # The weights of an output's marks make one penalty, so one row of its answers is left.
            answers = answers.drop_duplicates(OUTPUT_KEY).merge(penalties, on=OUTPUT_KEY)
            answers = answers.assign(value=(1 - answers["penalty"] / highest_penalty(section)).clip(lower=0))
        return answers.assign(other=None, is_first=None)


def highest_penalty(section) -> float:
    """Return the penalty of an output with the most marks that a page takes, each of the heaviest level."""
    protocol = REGISTRY[section.protocol]
    codebook = protocol.codebook_of(section)  # type: ignore[attr-defined]  # the protocol of marks
    heaviest = max(level.weight for level in codebook.severities)
    return float(heaviest) * protocol.cleaned_settings(section)["max_marks"]
