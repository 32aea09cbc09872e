"""What the fields of a study's forms are called: a researcher's words with their unit, and what holds where nothing is said.

They stand with the forms: what the columns are called in the data does not change with them.
"""

LABELS = {
    "study": {
        "consent": "Consent text",
        "retention": "What is kept, and how long",
        "withdrawal_until": "Last day to withdraw",
        "erase_after_days": "Days until panel ids are erased",
        "coverage": "Which prompts a batch has",
        "section_order": "Order of the sections",
        "annotators_per_batch": "Annotators for each batch",
        "batches_per_annotator": "Batches for each annotator",
        "target_n": "Annotators aimed at",
        "target_kind": "Which annotators count",
        "target_cap": "Most places ever",
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
    "section": {"position": "Place in the study", "m": "Shown (m)"},
    "question": {
        "position": "Place in the section",
        "key": "Name in the data",
        "text": "Question",
        "required": "Must be answered",
    },
    "contrast": {
        "expected": "What is expected",
        "estimand": "What is estimated",
        "margin": "Margin of equivalence",
        "level": "Significance level",
        "family": "Corrected together as",
        "x_condition": "X, by training",
        "y_condition": "Y, by training",
    },
    "rule": {"position": "Place", "role": "How it is used", "parameters": "Settings"},
}
HELP = {
    "study": {
        "retention": "Told with the consent text.",
        "withdrawal_until": "For annotators, of their own accord. Empty: there is none.",
        "erase_after_days": "After closing, if payment did not erase them earlier. By default 90.",
        "annotators_per_batch": "How many annotators are given the same batch. By default 1.",
        "batches_per_annotator": "Who submitted so many is given no other. By default 1.",
        "target_n": "The study is full with so many. Leave it empty only where a stopping rule decides.",
        "reward": "In the currency beside it.",
        "minutes": "Told on the first page.",
        "wage_per_hour": "What pay is held against. Empty: against nothing.",
        "words_per_minute": "For the minutes that are foretold, here and to annotators. By default 240.",
        "start_window_seconds": "Whoever agreed and then sends nothing for this long gives the place back. By default 600, 10 minutes.",
        "idle_seconds": "Whoever sends no page for this long gives the place back. Empty: the longer of 30 minutes and 3 times the declared minutes.",
        "grace_seconds": "Whoever is inside when the study closes may finish for this long. By default 7200, 2 hours; 0: for no time.",
    },
    "question": {
        "key": "Letters, digits, - and _; once in a section.",
    },
    "contrast": {
        "level": "By default 0.05.",
    },
}  # fmt: skip


def build_form_meta(name: str) -> type:
    """The ``Meta`` of a form about such rows."""
    return type("Meta", (), {"labels": LABELS[name], "help_texts": HELP.get(name, {})})
