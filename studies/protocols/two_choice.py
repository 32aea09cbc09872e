"""Pairwise choice: annotators choose the better of two outputs by a criterion. Its definition stays visible.

Source: Thorleiksdóttir, Renggli, Hollenstein and Zhang 2022, Dynamic Human Evaluation for Relative Model Comparisons.
"""

from typing import ClassVar

from django import forms
from django.db.models import Count

from studies.language import gettext_noop

from . import EstimandDirection, PageField, Problem, Protocol, ProtocolCard, register
from .base.fields import TIE, ExposureChoiceField, explanation_field
from .base.pages import shown_setting
from .base.pairs import (
    PairSettings,
    draw_pair_items,
    in_balanced_order,
    pair_problems,
    shown_pairs,
    system_contrasts_for_section,
)

PREFERENCE = "preference"
STOPPING_RULES = {
    "anytime": "anytime-valid: heval checks after every annotator and closes the study when the comparison is decided",
    "first": "as in Thorleiksdóttir et al. 2022, first crossing: Hoeffding's bound after each item; not valid for repeated checks",
    "stays": "as in the tables of Thorleiksdóttir et al. 2022, crossing that stays: known only afterwards, so the study never closes itself",
    "none": "none: the study ends at its target",
}
LABELLING_STRATEGIES = {
    "one": "one worker: each item once, by any annotator",
    "fixed": "fixed worker: each item once, all by the same annotator",
    "majority": "N workers: each item by N, the majority decides",
    "max_three": "max three workers: each item by two, and by a third if they disagree",
    "any": "no strategy: items are labelled each time they are drawn",
}


TIE_TEXT = gettext_noop("They are equally good")


class TwoChoiceSettings(PairSettings):
    # A missing key means the anytime-valid rule, as in all designs that were stored before. A rule costs power, so a new section has none.
    values_of_new_rows: ClassVar = {"stopping": "none"}
    strategy = forms.ChoiceField(choices=list(LABELLING_STRATEGIES.items()), initial="one", label="labelling strategy")
    workers = forms.IntegerField(
        min_value=3,
        max_value=99,
        initial=3,
        label="workers for an item (N)",
        help_text="Only for “N workers”: an odd number.",
    )
    allows_tie = forms.BooleanField(required=False, initial=False, label="annotators may say that neither is better")
    tie = forms.CharField(
        max_length=80, initial=TIE_TEXT, label="words of a tie", help_text="Only if ties are allowed."
    )
    stopping = forms.ChoiceField(choices=list(STOPPING_RULES.items()), initial="anytime", label="stopping rule")
    delta = forms.FloatField(
        min_value=0.0001,
        max_value=0.2,
        initial=0.001,
        label="error allowed (delta)",
        help_text="Only for the rules of Thorleiksdóttir et al. 2022: 1 minus the confidence.",
    )
    noun = forms.CharField(
        max_length=30, initial="text", help_text="What a labelled output is called: text, sentence, image."
    )
    explanation = explanation_field("Above the question on each page.")

    def clean_workers(self):
        workers = self.cleaned_data["workers"]
        if workers % 2 == 0:
            raise forms.ValidationError("An even number may have no majority. Choose an odd number.")
        return workers


def initial_labels_per_item(settings) -> int | None:
    """Return how many labels an item gets from its batch, or None if the strategy does not fix it."""
    places = {"one": 1, "fixed": 1, "majority": settings["workers"], "max_three": 2}
    return places.get(settings["strategy"])


@register
class TwoChoice(Protocol):
    slug = "two_choice"
    comparable_answers = "choice"
    label = "Two choices: which of two is better"
    help = "Annotators choose between two outputs of a prompt, on random sides. The question's help is the criterion's definition."
    settings_form = TwoChoiceSettings
    default_scale_kind = "output"
    item_noun = "pairs"
    comparison_scope = "pair"
    source = "Thorleiksdóttir et al. 2022"
    card = ProtocolCard(
        order=1,
        name="Which is better?",
        tells="How often people prefer the output of one system to that of another for the same prompt.",
        not_when="Not if you need to know how good the outputs are: two bad ones have a winner, too.",
        instructions="Each page has a prompt and two {noun}s. Read both to the end. Then choose the one that is {more}. They are on random "
        "sides, and a longer {noun} is not a better one.",
        n_outputs=2,
        answers=1,
        headline="two_choice",
        example_m=9,
        takes_turns=True,
    )
    column_meanings = {
        "chosen_system": "The system whose output was chosen. Empty for a tie and for a skipped question. The table of items names both "
        "systems.",
        "choice": f"“{TIE}” for a tie, otherwise empty.",
        "label": "The letter of the chosen output.",
    }

    def estimands(self, section):
        return {PREFERENCE: "P(x chosen over y)"}

    def estimand_scale_length(self, estimand, questions):
        return 1.0  # a probability

    def direction(self, estimand, questions):
        return EstimandDirection(null=0.5)

    # The design

    def questions_about(self, criteria, noun):
        return [
            {
                "key": one.key,
                "criterion": one.label,
                "text": one.question or f"Which {noun} is {one.more}?",
                "help": one.definition,
                "scale": {"kind": "output"},
            }
            for one in criteria
        ]

    def settings_about(self, criteria, has_baseline):
        # The number of labels of an item follows from the people that the plan finds.
        return self.settings_of_new_section() | {"strategy": "any", "pairs": "reference" if has_baseline else "all"}

    def answer_keys(self, section, question):
        return (TIE,) if self.cleaned_settings(section)["allows_tie"] else ()

    def pairs(self, section, systems):
        """Return the pairs of ids that the section shows."""
        return shown_pairs(section, self.cleaned_settings(section), systems)

    def turn_sets(self, section, systems):
        return in_balanced_order(tuple(self.pairs(section, systems)))

    def draw(self, section, pool, rng):
        """Draw a pair for each prompt. A strategy that counts labels ends when each item was drawn once."""
        is_once = self.cleaned_settings(section)["strategy"] != "any"
        return draw_pair_items(self.pairs(section, pool.systems), section.m, pool, rng, without_repeats=is_once)

    def can_be_about_new_prompts(self, section):
        # An anytime-valid rule adds evidence person by person.
        return self.cleaned_settings(section)["stopping"] != "anytime"

    def stops_by_bets(self, section):
        return section.purpose == "live" and self.cleaned_settings(section)["stopping"] == "anytime"

    def problems(self, section):
        questions = list(section.questions.all())
        for question in questions:
            if (question.scale or {}).get("kind") != "output":
                yield Problem(f"Question {question.key} must have the scale “one of the outputs shown”.", "questions")
            if question.x_id:
                yield Problem(
                    f"Question {question.key} cannot name two systems, because sides are random. Leave x and y empty.",
                    "questions",
                )
            if not question.help.strip():
                yield Problem(
                    f"Question {question.key} has no help text. Write the criterion's definition there, so that annotators see it.",
                    "questions",
                    False,
                    f"no_definition:{question.key}",
                )
        if len(questions) > 1:
            yield Problem(
                "The section asks about several criteria for the same pair. Answers to one question influence the next.",
                "questions",
                False,
                "several_criteria",
            )
        if section.reuses_id:
            yield Problem(
                "The labelling strategy needs the section's own items, but the section reuses those of another one. Give it its own "
                "items.",
                "reuses",
            )
        yield from pair_problems(section, self.cleaned_settings(section))
        yield from self._strategy_problems(section)
        yield from self._stopping_problems(section)

    def _strategy_problems(self, section):
        study, settings = section.study, self.cleaned_settings(section)
        labels_needed = self.annotators_needed_per_batch(section)
        if labels_needed is None:
            return
        if study.annotators_per_batch != labels_needed:
            yield Problem(
                f"The strategy needs {labels_needed} annotators per batch, but the study has {study.annotators_per_batch}.",
                "annotators_per_batch",
            )
        if study.coverage != study.Coverage.BALANCED:
            yield Problem("A labelling strategy needs balanced coverage, because it counts labels.", "coverage")
        n_arms = section.arms.count() or study.arms.count()
        if n_arms > 1:
            yield Problem(
                "Several arms see all items of this section. Each item gets the strategy's labels once in each arm.",
                "arms",
                settings["strategy"] == "max_three",
                "strategy_in_each_arm",
            )
        own_batches = study.batches.filter(origin="imported")
        if own_batches.exists():
            yield from self._ready_made_problems(section, own_batches, settings)
        else:
            yield from self._supply_problems(section)
        if settings["strategy"] == "fixed" and study.target_n and study.batches_per_annotator < study.target_n:
            yield Problem(
                f"One annotator answers all {study.target_n} batches. Allow {study.target_n} batches per annotator.",
                "batches_per_annotator",
            )

    def _ready_made_problems(self, section, own_batches, settings):
        n_repeated = (
            section.items.filter(placements__batch__in=own_batches)
            .annotate(n=Count("placements"))
            .filter(n__gt=1)
            .count()
        )
        if n_repeated:
            yield Problem(
                f"{n_repeated} items are in several ready-made batches, so they get more labels than the strategy needs.",
                "batches",
                settings["strategy"] == "max_three",
                "items_in_several_batches",
            )
        places = own_batches.count() * section.study.annotators_per_batch
        if settings["strategy"] == "max_three" and section.study.target_n and section.study.target_n < places:
            yield Problem(
                f"Third labels need all ready-made batches to be open. Set the target to {places}.", "target_n"
            )

    def _supply_problems(self, section):
        study, places = section.study, self.most_places(section)
        if study.target_n and places and study.target_n > places:
            yield Problem(
                f"{self._count_items(section)} items in batches of {section.m} give {places} places with this strategy, but the target is {study.target_n}.",
                "target_n",
            )

    def annotators_needed_per_batch(self, section):
        return initial_labels_per_item(self.cleaned_settings(section))

    def most_places(self, section):
        labels_needed = self.annotators_needed_per_batch(section)
        return labels_needed and self._count_items(section) // max(1, section.m) * labels_needed

    def _count_items(self, section) -> int:
        study = section.study
        systems = list(study.systems.judged().order_by("name").values_list("pk", flat=True))
        n_complete = study.prompts.annotate(n=Count("outputs__system", distinct=True)).filter(n=len(systems)).count()
        return n_complete * len(self.pairs(section, systems))

    def _stopping_problems(self, section):
        study, settings = section.study, self.cleaned_settings(section)
        if section.purpose != "live" or settings["stopping"] == "none":
            return
        if not study.target_n:
            yield Problem("A stopping rule needs a target: the largest number of annotators it may use.", "target_n")
        primary = list(study.contrasts.filter(role="primary").select_related("x", "y"))
        contrasts = system_contrasts_for_section(primary, section, PREFERENCE, self.default_estimand(section))
        if not contrasts:
            yield Problem(
                "The stopping rule needs a primary contrast, and the plan has no such contrast. Add one.", "contrasts"
            )
        if settings["stopping"] == "anytime":
            if settings["strategy"] == "fixed":
                yield Problem(
                    "The anytime-valid rule counts annotators, but a fixed worker is only one. Choose another rule.",
                    "settings",
                )
            for contrast in contrasts:
                if contrast.margin is None:
                    yield Problem(
                        f"{contrast} has no margin. The report can conclude that one is better, but not that the two are equivalent.",
                        "contrasts",
                        False,
                        f"no_margin_to_stop:{contrast}",
                    )
                if contrast.population == "people_and_prompts":
                    yield Problem(
                        f"{contrast}: the anytime-valid rule counts people, so its result is about exactly these prompts. Choose that, or no "
                        "stopping rule.",
                        "contrasts",
                        False,
                        f"stops_for_these_prompts:{contrast}",
                    )
            if study.batches_per_annotator > 1:
                yield Problem(
                    "Annotators may take several batches. The stopping rule counts only the first batch of each annotator.",
                    "batches_per_annotator",
                    False,
                    "first_batch_counts",
                )
        elif settings["stopping"] == "first":
            yield Problem(
                "Hoeffding's bound is valid for one check. Checked after every item, it decides between two equal systems far more "
                "often than delta says.",
                "settings",
                False,
                "fixed_n_bound",
            )

    # An annotator's page

    def page_fields(self, page):
        tie = shown_setting(page.section.settings.get("tie") or TIE_TEXT, TIE_TEXT)
        may_tie = bool(page.section.settings.get("allows_tie"))
        return {
            page.slot(question, item): PageField(
                ExposureChoiceField(question.required, item.exposures, tie if may_tie else ""),
                question.id,
                answer_column="chosen",
                item_id=item.id,
                position=item.position,
                text=question.text,
                help=question.help,
                skip_reasons=question.skip_reasons,
            )
            for item in page.items
            for question in page.questions
        }

    # Collecting

    def is_for_one_annotator(self, section):
        return self.cleaned_settings(section)["strategy"] == "fixed"

    def may_need_top_ups(self, section):
        return self.cleaned_settings(section)["strategy"] == "max_three"

    def is_item_settled(self, section, labels):
        """Return whether two labels agree (also on a tie), or there are three."""
        return len(labels) > 2 or (len(labels) == 2 and labels[0] == labels[1])

    def has_stopping_rule(self, section):
        return section.purpose == "live" and self.cleaned_settings(section)["stopping"] in ("anytime", "first")
