"""The form of a preparation: a field for each switch and number, never raw JSON."""

import re
from dataclasses import asdict, fields
from typing import Any

from django import forms

from studies.stimuli.normalising import FILTERS, SENTENCE_END_RULES, Normalisation, Preparation, filter_as_json
from studies.stimuli.texts import TextRefused, clean_text

from .forms import CleanTextMixin, LinesField, choice_field

SWITCHES = {
    "byte_order_mark": ("Remove byte order marks", ""),
    "line_breaks": ("Use one kind of line break", ""),
    "composed": (
        "Compose characters (Unicode NFC)",
        "For example, é becomes one character instead of an e and an accent.",
    ),
    "leading_tag": ("Remove tags at the start of prompts", "Such as [WP] or [ Horror ]. Outputs keep their tags."),
    "tokeniser_quotes": ("Replace a tokeniser's quotes by quotation marks", "`` and '' become \"."),
    "straight_quotes": ("Make curly quotes straight", ""),
    "tokenised_spacing": ("Remove a tokeniser's spaces", "As in “word ;”. Do not use it for French."),
    "trailing_blanks": ("Remove spaces at line ends, and blank lines at the start and the end", ""),
}
MANNERS = (
    ("none", "not at all"),
    ("longest_of_others", "to the length of the longest text of the other systems, at the end of a sentence"),
    ("characters", "to a number of characters, at the end of a sentence"),
    ("words", "to the end of the sentence that contains the word with this number"),
)
ENDS = {
    "whole": "keep closing quotes, never cut inside a number",
    "paper": "the published rule: . ? or ! and a quote",
}
# Filters without a field here need reference texts. The form keeps them as they are.
FIELDLESS = frozenset(FILTERS) - {
    "begins_with_tag",
    "begins_with",
    "has_no_question",
    "ends_in_punctuation",
    "has_no_tag_residue",
    "word_limits",
    "has_none",
}
SEPARATOR = "---"
MAX_PRIMING_BYTES = 1024 * 1024


class PreparationForm(CleanTextMixin, forms.Form):
    tags = LinesField(
        rows=2,
        required=False,
        label="Only prompts that begin with one of these tags",
        help_text="One per line, such as WP.",
    )
    begins = forms.CharField(required=False, max_length=200, label="Only prompts that begin with")
    has_no_question = forms.BooleanField(required=False, label="Only prompts without a question mark")
    ends_in_punctuation = forms.BooleanField(required=False, label="Only prompts that end in punctuation")
    has_no_tag_residue = forms.BooleanField(required=False, label="Only prompts without the rest of a tag at the start")
    minimum_words = forms.IntegerField(required=False, min_value=0, max_value=100_000, label="Minimum number of words")
    maximum_words = forms.IntegerField(required=False, min_value=0, max_value=100_000, label="Maximum number of words")
    has_none = LinesField(rows=2, required=False, label="Only prompts without any of these", help_text="One per line.")
    priming = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        label="Only outputs that copy none of these texts",
        help_text="Such as the texts that primed a model. A line of three hyphens (---) separates two texts.",
    )
    priming_file = forms.FileField(
        required=False,
        label="Or a text file of them",
        help_text="UTF-8, with the same lines between texts. It replaces the field above.",
    )
    copied = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=100,
        initial=80,
        label="Most that an output may copy, in percent",
        help_text="Of its runs of five words in a row, those that are in one of these texts; case does not matter.",
    )
    manner = forms.ChoiceField(choices=MANNERS, label="How to shorten outputs", initial="none")
    limit = forms.IntegerField(required=False, min_value=1, max_value=1_000_000, label="Number of characters or words")
    trimmed = forms.MultipleChoiceField(
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Systems whose outputs are shortened",
        help_text="None ticked: all systems, if you enter a number.",
    )
    ends = forms.ChoiceField(
        choices=[(name, ENDS.get(name, name)) for name in SENTENCE_END_RULES], label="Sentence ends", initial="whole"
    )

    def __init__(self, data: Any = None, files: Any = None, *, systems: list[str], stored: dict[str, Any]):
        self.stored = stored
        initial, self.hidden_filters, self.hidden_output_filters = _initial_from(stored)
        super().__init__(data, files, initial=initial)
        for name in ("minimum_words", "maximum_words", "limit", "copied"):
            self.fields[name].widget = forms.TextInput(attrs={"inputmode": "numeric", "size": 8})
        choice_field(self, "trimmed").choices = [(name, name) for name in systems]
        for switch in fields(Normalisation):
            label, help_text = SWITCHES.get(switch.name, (switch.name.replace("_", " "), ""))
            self.fields[f"is_{switch.name}"] = forms.BooleanField(required=False, label=label, help_text=help_text)

    def prompt_fields(self):
        names = (
            "tags", "begins", "has_no_question", "ends_in_punctuation", "has_no_tag_residue", "minimum_words",
            "maximum_words", "has_none",
        )  # fmt: skip
        return [self[name] for name in names]

    def text_fields(self):
        return [self[f"is_{switch.name}"] for switch in fields(Normalisation)]

    def output_fields(self):
        return [self[name] for name in ("priming", "priming_file", "copied")]

    def length_fields(self):
        return [self[name] for name in ("manner", "limit", "trimmed", "ends")]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        manner = cleaned.get("manner")
        if manner in ("characters", "words") and not cleaned.get("limit") and "limit" not in self.errors:
            self.add_error("limit", "The number of characters or words is missing. Enter it here.")
        if manner == "longest_of_others" and not cleaned.get("trimmed") and "trimmed" not in self.errors:
            self.add_error(
                "trimmed",
                "No system is ticked. Tick the systems whose outputs are shortened to the length of the others.",
            )
        low, high = cleaned.get("minimum_words") or 0, cleaned.get("maximum_words") or 0
        if 0 < high < low:
            self.add_error(
                "maximum_words", f"The maximum is below the minimum ({low}). Raise the maximum, or lower the minimum."
            )
        if file := cleaned.get("priming_file"):
            try:
                cleaned["priming"] = clean_text(file.read().decode("utf-8-sig"), field="The file")
            except UnicodeDecodeError:
                self.add_error("priming_file", "The file is not UTF-8 text. Save it as UTF-8.")
            except TextRefused as refused:
                self.add_error("priming_file", str(refused))
            # The next request has no file, so the page repeats its texts.
            data: Any = self.data
            self.data = data.copy()
            self.data["priming"] = cleaned["priming"]  # type: ignore[index]  # a QueryDict
        return cleaned

    def clean_priming_file(self) -> Any:
        file = self.cleaned_data["priming_file"]
        if file and file.size > MAX_PRIMING_BYTES:
            raise forms.ValidationError("The file has more than 1 MB. Keep the texts that primed the models.")
        return file

    def settings(self) -> dict[str, Any]:
        """Return the settings of the form, as `Preparation.from_json` reads them."""
        if not self.has_changed():
            return self.stored
        cleaned = self.cleaned_data
        is_length = cleaned["manner"] != "none"
        return {
            "prompt_filters": list(self._filters(cleaned)),
            "output_filters": [*self._output_filters(cleaned), *self.hidden_output_filters],
            "normalisation": {switch.name: cleaned[f"is_{switch.name}"] for switch in fields(Normalisation)},
            "length": {
                "manner": cleaned["manner"],
                "limit": (cleaned["limit"] or 0) if cleaned["manner"] in ("characters", "words") else 0,
                "trimmed": cleaned["trimmed"] if is_length else [],
                "ends": cleaned["ends"] if is_length else "whole",
            },
        }

    def _output_filters(self, cleaned: dict[str, Any]):
        texts = [text.strip() for text in re.split(rf"(?m)^\s*{SEPARATOR}\s*$", cleaned["priming"])]
        if references := [text for text in texts if text]:
            share = 80 if cleaned["copied"] is None else cleaned["copied"]
            yield {"filter": "copies_at_most", "references": references, "share": share / 100}

    def _filters(self, cleaned: dict[str, Any]):
        if cleaned["tags"]:
            yield {"filter": "begins_with_tag", "tags": cleaned["tags"]}
        if cleaned["begins"]:
            yield {"filter": "begins_with", "text": cleaned["begins"]}
        for name in ("has_no_question", "ends_in_punctuation", "has_no_tag_residue"):
            if cleaned[name]:
                yield {"filter": name}
        if cleaned["minimum_words"] or cleaned["maximum_words"]:
            yield {
                "filter": "word_limits",
                "minimum": cleaned["minimum_words"] or 0,
                "maximum": cleaned["maximum_words"] or 0,
            }
        if cleaned["has_none"]:
            yield {"filter": "has_none", "strings": cleaned["has_none"]}
        yield from self.hidden_filters


def _initial_from(stored: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the initial values of the fields from the stored settings, and the filters that have no field here."""
    preparation = Preparation.from_json(stored or {})
    declared: dict[str, dict[str, Any]] = {}
    hidden_filters: list[dict[str, Any]] = []
    for prompt_filter in preparation.as_json()["prompt_filters"]:
        if prompt_filter["filter"] in FIELDLESS or prompt_filter["filter"] in declared:
            hidden_filters.append(prompt_filter)
        else:
            declared[prompt_filter["filter"]] = prompt_filter
    of_outputs = [filter_as_json(one) for one in preparation.output_filters]
    copied = next((one for one in of_outputs if one["filter"] == "copies_at_most" and one["words"] == 5), None)
    length = preparation.length
    initial = {f"is_{name}": value for name, value in asdict(preparation.normalisation).items()} | {
        "manner": length.manner,
        "limit": length.limit or None,
        "trimmed": list(length.trimmed),
        "ends": length.ends,
        "tags": declared.get("begins_with_tag", {}).get("tags", []),
        "begins": declared.get("begins_with", {}).get("text", ""),
        "minimum_words": declared.get("word_limits", {}).get("minimum") or None,
        "maximum_words": declared.get("word_limits", {}).get("maximum") or None,
        "has_none": declared.get("has_none", {}).get("strings", []),
    }
    if copied:
        initial["priming"] = f"\n{SEPARATOR}\n".join(copied["references"])
        initial["copied"] = round(100 * copied["share"])
    for name in ("has_no_question", "ends_in_punctuation", "has_no_tag_residue"):
        initial[name] = name in declared
    return initial, hidden_filters, [one for one in of_outputs if one is not copied]
