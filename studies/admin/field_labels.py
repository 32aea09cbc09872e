"""The groups of the fields of a study's form, and labels and help texts, which name the unit and the default of an empty field.

They belong to the forms. The names of the columns in the data are independent of them.
"""

from typing import Any

from django.contrib.admin.utils import flatten

LABELS = {
    "study": {
        "consent": "Consent text",
        "retention": "Data retention",
        "withdrawal_until": "Last day to withdraw",
        "erase_after_days": "Days until panel ids are erased",
        "shows_link_addresses": "Show the addresses of links in outputs",
        "asks_to_share_preferences": "Ask whether preferences may be given away",
        "joins_rounds": "Join a person's answers in several rounds",
        "required_qualification": "Required qualification",
        "minimum_width": "Smallest screen",
        "warning_limit": "Most outputs with a warning, for each person",
        "needs_mouse": "Needs a mouse",
        "licence": "Licence of the data",
        "stimuli_source": "Source of the texts",
        "compared_groups": "Compare groups by",
        "coverage": "Prompts in each batch",
        "section_order": "Order of the sections",
        "annotators_per_batch": "Annotators for each batch",
        "batches_per_annotator": "Batches for each annotator",
        "target_n": "Target number of annotators",
        "target_kind": "Which annotators count",
        "target_cap": "Maximum number of places",
        "wage_per_hour": "Target hourly pay",
        "reward": "Reward for one batch",
        "minutes": "Declared minutes for one batch",
        "start_window_seconds": "Time to begin, in seconds",
        "idle_seconds": "Time for a page, in seconds",
        "grace_seconds": "Time to finish after closing, in seconds",
    },
    "arm": {
        "condition": "Training",
        "domain": "Domain of the prompts",
        "wanted": "Places",
        "minutes": "Declared minutes",
    },
    "section": {"position": "Position in the study", "m": "Shown (m)"},
    "question": {
        "position": "Position in the section",
        "key": "Name in the data",
        "text": "Question",
        "required": "Must be answered",
    },
    "contrast": {
        "expected": "Expected result",
        "estimand": "Estimated quantity",
        "hypothesis": "To be shown",
        "margin": "Margin",
        "level": "Significance level",
        "family": "Family (adjusted together)",
        "population": "The result is about",
        "x_condition": "Training of X",
        "y_condition": "Training of Y",
    },
    "family": {
        "name": "Name of the family",
        "adjustment": "Adjusted by",
        "after": "Tested only after",
    },
    "rule": {"position": "Position in the list", "role": "Use", "parameters": "Settings"},
}
HELP = {
    "study": {
        "retention": "What is kept, and for how long. Shown with the consent text.",
        "withdrawal_until": "Until this day annotators can withdraw by themselves. Empty: no last day.",
        "erase_after_days": "Counted from the closing of the study. Payment may erase them earlier. By default 90.",
        "annotators_per_batch": "How many annotators receive the same batch. By default 1.",
        "batches_per_annotator": "The most batches that one annotator can submit. By default 1.",
        "target_n": "The study is full at this number. Leave it empty only if a stopping rule ends the study.",
        "reward": "In the currency of the next field.",
        "minutes": "Shown on the first page.",
        "wage_per_hour": "heval warns if the pay per hour is lower. Empty: no warning.",
        "words_per_minute": "Used for the estimated minutes, here and on annotators' pages. By default 240.",
        "start_window_seconds": "If an annotator agrees and then sends nothing for this long, the place is released. By default 600 (10 minutes).",
        "idle_seconds": "If an annotator sends no page for this long, the place is released. Empty: 30 minutes or 3 times the declared minutes, whichever is longer.",
        "grace_seconds": "Annotators who have started have this long to finish after you close the study. By default 7200 (2 hours). 0: no time.",
    },
    "question": {
        "key": "Letters, digits, - and _. Unique in the section. Empty: made from the criterion or the question.",
    },
    "contrast": {
        "hypothesis": "“Not worse” example: a cheaper model may lose by at most 5 points. Margin 0.05: shown if its whole interval is above 45 %.",
        "margin": "The largest difference that does not matter, such as 0.05 for 5 points of a probability.",
        "level": "By default 0.05.",
        "population": "A result about prompts like these needs five prompts or more, judged by several people.",
        "family": "Comparisons of one family are adjusted together. Empty: all comparisons with the same role.",
    },
    "family": {
        "name": "A role (primary, secondary, exploratory), or a name from the field Family of the comparisons.",
        "adjustment": "Bonferroni has intervals that agree with p. Holm and Hommel show at least as much, without such intervals.",
        "after": "Another family. Example: primary, in the row of secondary. Then secondary is tested only if all of primary was shown, and the error level holds over both.",
    },
}  # fmt: skip


# A group with the class ``collapse`` is folded.
FIELDSETS: tuple[tuple[str, Any], ...] = (
    ("The study", {"fields": ("title", "language", "exclusion_group", "required_qualification", ("minimum_width", "needs_mouse"), "keeps_origin_out"), "classes": ["part-study"]}),
    (
        "Texts for annotators",
        {"fields": ("public_title", "purpose", "instructions", "debriefing", "content_warning", "warning_limit", "shows_link_addresses"), "classes": ["part-words", "collapse"]},
    ),
    (
        "Consent and ethics",
        {
            "fields": (
                "consent", "contact", "institution", "approval_number", "retention", "withdrawal_until",
                "withdrawal_blanks_ratings", "erase_after_days", "asks_to_share_preferences", "joins_rounds", "licence", "stimuli_source", "group_noun",
            ),
            "classes": ["part-consent", "collapse"],
        },
    ),
    (
        "Design",
        {
            "fields": (("coverage", "section_order"), ("annotators_per_batch", "batches_per_annotator"), "bars_flagged_annotators", "compared_groups", "seed"),
            "description": "How batches are drawn. Systems, arms, sections and planned comparisons follow below.",
            "classes": ["part-design", "collapse"],
        },
    ),
    ("Target", {"fields": (("target_n", "target_kind"), ("target_cap", "replaces_excluded")), "classes": ["part-target"]}),
    (
        "Pay",
        {"fields": (("reward", "currency", "minutes"), ("wage_per_hour", "words_per_minute")), "classes": ["part-pay"]},
    ),
    (
        "Times",
        {"fields": (("start_window_seconds", "idle_seconds", "grace_seconds"),), "classes": ["part-times", "collapse"]},
    ),
)  # fmt: skip


def part_of_fieldset(options: dict[str, Any]) -> str:
    return options["classes"][0].removeprefix("part-")


# A field of a study > the part of the page that has it, ``?part=<name>``.
PARTS_OF_FIELDS = {field: part_of_fieldset(options) for _, options in FIELDSETS for field in flatten(options["fields"])}


def build_form_meta(row_kind: str) -> type:
    """Return the ``Meta`` class of a form for this kind of row."""
    return type("Meta", (), {"labels": LABELS[row_kind], "help_texts": HELP.get(row_kind, {})})
