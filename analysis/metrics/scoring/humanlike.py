"""Human or machine: an output scores 1 if the annotator said that a human wrote it, and 0 otherwise."""

from studies.protocols.humanlike import SOURCE

from .base import Scorer


class HumanLikeScorer(Scorer):
    slug = "humanlike"

    def is_scored(self, question):
        return question.key == SOURCE

    def describe_scores(self, section, question):
        return "An answer gives the highest score if it says that a human wrote the output, and the lowest otherwise, for texts of machines too."

    def find_problem(self, section, settings):
        if section.study.systems.judged().filter(is_human=True).exists():
            return ""
        return "Annotators compare human with machine texts, but the template has no human system. Add one with its outputs."

    def items_per_prompt(self, settings, n_systems, n_references):
        # Half of the texts are by machines. With several human systems this is more than needed, never less.
        return 2 * max(1, n_systems - 1)

    def score_answers(self, section, question, answers, shown):
        from analysis.stats.signal_detection import ratings_to_machine_answers

        rows = answers[answers["value"].notna() & answers["system"].notna()]
        says_machine = ratings_to_machine_answers(rows["value"].to_numpy(float), threshold=0.5)
        return rows.assign(value=1 - says_machine, other=None, is_first=None)
