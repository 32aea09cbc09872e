"""SPA: an answer is the chance that one system is better than another, stated after reading outputs of both."""

from itertools import groupby

from studies.services.questions import add_missing_questions, select_system_pairs

from .base import Scorer


class SPAScorer(Scorer):
    slug = "spa"
    kind = "preferences"
    gives_scores_of_one_output = False
    is_about_outputs = False

    def items_per_prompt(self, settings, n_systems, n_references):
        return 1.0  # an item shows the outputs of all systems

    def ask_about_all_systems(self, section):
        # The first question of each criterion says how to ask. The template cannot name systems that are not submitted yet.
        by_criterion = sorted(section.questions.all(), key=lambda question: question.criterion)
        patterns = [next(same) for _, same in groupby(by_criterion, key=lambda question: question.criterion)]
        patterns.sort(key=lambda question: question.position)
        section.questions.all().delete()
        pairs = select_system_pairs(section, "all")
        for pattern in patterns:
            add_missing_questions(section, pairs, pattern.text, by=None, criterion=pattern.criterion)
            section.questions.filter(criterion=pattern.criterion).update(
                help=pattern.help, required=pattern.required, skip_reasons=pattern.skip_reasons
            )

    def score_answers(self, section, question, answers, shown):
        answers = answers[answers["x"].notna() & answers["y"].notna() & answers["value"].notna()]
        # Each direction is an answer of its own. The system that is named first takes the place of the one shown first.
        return answers.assign(system=answers["x"], other=answers["y"], is_first=True)
