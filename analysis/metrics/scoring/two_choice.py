"""Two choices: an answer prefers one of two systems. A tie is a half for both."""

from studies.protocols.base.fields import TIE

from .base import Scorer, other_system


class TwoChoiceScorer(Scorer):
    slug = "two_choice"
    kind = "preferences"

    def find_problem(self, section, settings):
        if settings["stopping"] != "none":
            return "The two choices have a stopping rule, but a round ends when its places are filled. Choose no rule."
        if settings["strategy"] != "any":
            return "The two choices have a labelling strategy, but a board says how many labels an output gets. Choose none."
        return ""

    def items_per_prompt(self, settings, n_systems, n_references):
        return n_systems - n_references if settings["pairs"] == "reference" else n_systems / 2

    def score_answers(self, section, question, answers, shown):
        pairs = answers["item"].map(shown)
        is_tie = answers["choice"] == TIE
        answers = answers[(is_tie | answers["chosen_system"].notna()) & pairs.notna()]
        first = answers["item"].map(shown).map(lambda pair: pair[0])
        is_tie = answers["choice"] == TIE
        is_chosen = answers["chosen_system"] == first
        # Letters follow the places on the page, so the chosen output's letter says which one was shown first.
        is_first = (answers["label"] == "A") == is_chosen
        return answers.assign(
            system=first,
            other=answers["item"].map(shown).combine(first, other_system),
            value=is_chosen.astype(float).where(~is_tie, 0.5),
            is_first=is_first.astype(object).where(~is_tie & answers["label"].fillna("").ne(""), None),
        )
