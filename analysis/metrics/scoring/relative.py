"""Relative scales against the reference: 0.5 means as good as the reference."""

from studies.models import System

from .base import Scorer, other_system


class RelativeScorer(Scorer):
    slug = "relative"
    gives_scores_of_one_output = False

    def find_problem(self, section, settings):
        if settings["pairs"] == "reference":
            return ""
        return "The relative scale does not show each system with the reference, which is the middle of all scores. Choose these pairs."

    def items_per_prompt(self, settings, n_systems, n_references):
        return n_systems - n_references

    def score_answers(self, section, question, answers, shown):
        systems = System.objects.filter(study=section.study_id, reference=System.Reference.ORDINARY)
        references = set(systems.values_list("name", flat=True))
        answers = answers[answers["value"].notna() & answers["system"].notna()]
        first = answers["system"]
        other = answers["item"].map(shown).combine(first, other_system)
        # The value is about the output that was shown first, and may be about the reference.
        is_first = ~first.isin(references)
        rows = answers.assign(
            system=first.where(is_first, other),
            other=other.where(is_first, first),
            value=answers["value"].where(is_first, 1 - answers["value"]),
            is_first=is_first,
        )
        return rows[rows["other"].isin(references) & ~rows["system"].isin(references)]
