"""Fields that the settings of several protocols share, each call gives a new one, and what a new row stores of a settings form."""

from typing import Any

from django import forms


def values_of_new_row(form: type[forms.Form] | None) -> dict[str, Any]:
    """Return what a new section or rule stores of its settings form: every setting, so that no later default changes it.

    A field's ``initial`` is what a missing key means. Stored designs lack keys, so it never changes. If new rows need another
    value, the form names it in ``values_of_new_rows``.
    """
    if form is None:
        return {}
    fields = form().fields
    return {name: field.initial for name, field in fields.items()} | getattr(form, "values_of_new_rows", {})


def letters_field() -> forms.ChoiceField:
    """Return the setting of how outputs get their letters."""
    return forms.ChoiceField(
        choices=[
            ("random", "random letters for each prompt"),
            ("fixed", "the same letters for all annotators, in the order of the systems' names"),
        ],
        initial="random",
        label="letters",
    )


def layout_field() -> forms.ChoiceField:
    """Return the setting of how outputs are first laid out."""
    return forms.ChoiceField(
        choices=[("side", "side by side"), ("one", "one under the other")], initial="side", label="first layout"
    )


def noun_field() -> forms.CharField:
    """Return the setting of what a labelled output is called."""
    return forms.CharField(
        max_length=30, initial="text", help_text="What a labelled output is called: text, summary, image."
    )


def explanation_field(help_text: str, rows: int = 4) -> forms.CharField:
    """Return the setting of a Markdown text for annotators."""
    return forms.CharField(
        widget=forms.Textarea(attrs={"rows": rows}), required=False, help_text=f"{help_text} Markdown."
    )


def source_field() -> forms.ChoiceField:
    """Return the setting of whether the pages of a section show the source document of a prompt."""
    return forms.ChoiceField(
        choices=[("shown", "shown with the prompt"), ("hidden", "not shown in this section")],
        initial="shown",
        label="source document",
        help_text="Hide it in the first of two sections with the same items, to ask about the outputs before annotators read the document.",
    )
