"""The page of the data model: tables, columns and constraints, with descriptions also from columns.toml."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.db import models

from studies.models.guards import AppendOnlyModel, DesignModel

from .markdown import as_sentence, build_page, inline_code, load_descriptions, markdown_table

COLUMN_DESCRIPTIONS: dict[str, dict[str, str]] = load_descriptions("columns")
FIELD_TYPES = {
    "CharField": "text",
    "TextField": "text",
    "SlugField": "key",
    "JSONField": "JSON",
    "BooleanField": "true or false",
    "UUIDField": "uuid",
    "DateTimeField": "time",
    "DateField": "date",
    "DecimalField": "decimal",
    "FloatField": "number",
    "BinaryField": "bytes",
}


def studies_data_model_page() -> str:
    return _page("Data model of studies", ("studies",))


def annotators_data_model_page() -> str:
    return _page("Data model of annotators", ("annotators",))


def analysis_data_model_page() -> str:
    return _page("Data model of analyses and boards", ("analysis", "boards"))


def _page(title: str, names: Iterable[str]) -> str:
    parts = []
    for app in names:
        parts.append(f"## {app}")
        for model in sorted(apps.get_app_config(app).get_models(), key=lambda model_class: model_class.__name__):
            parts += _model(model)
    return build_page(
        title,
        "This page lists the tables with their columns and constraints. Each constraint is named as a sentence. "
        "A row cannot be deleted while a foreign key points to it, unless the table says otherwise.",
        *parts,
    )


def _model(model: type[models.Model]) -> Iterator[str]:
    yield f"### {model.__name__}"
    words = (model.__doc__ or "").strip()
    if words and not words.startswith(f"{model.__name__}("):
        yield as_sentence(words)
    if notes := _guards(model):
        yield notes
    rows = [
        (inline_code(field.name), _type(field), _field_description(field))
        for field in model._meta.get_fields()
        if _is_own(field)
    ]
    yield markdown_table(("Column", "Type", "Meaning"), rows)
    if refused := [_constraint(constraint) for constraint in model._meta.constraints]:
        yield "The database enforces: " + "; ".join(refused) + "."


def _guards(model: type[models.Model]) -> str:
    if issubclass(model, AppendOnlyModel):
        return "Rows can only be added; the database refuses changes and deletions." + (
            " Only an erasure may blank the answers of a person who withdrew." if model.__name__ == "Response" else ""
        )
    if issubclass(model, DesignModel):
        grows = " Rows can be added after launch." if getattr(model, "may_add_after_launch", False) else ""
        amendable = ", ".join(inline_code(name) for name in sorted(getattr(model, "amendable_fields", ())))
        return f"Frozen at launch.{grows}" + (f" Amendments can change: {amendable}." if amendable else "")
    return ""


def _is_own(field: Any) -> bool:
    return not field.auto_created and not (field.many_to_many and field.auto_created)


def _type(field: Any) -> str:
    if field.is_relation:
        to = field.related_model.__name__
        return f"many {to}" if field.many_to_many else f"{to}{', or empty' if field.null else ''}"
    kind = FIELD_TYPES.get(field.get_internal_type(), "whole number")
    limit = f", at most {field.max_length}" if kind in ("text", "key") and field.max_length else ""
    return f"{kind}{limit}{', or empty' if field.null else ''}"


def _field_description(field: Any) -> str:
    words = []
    choices = () if callable(getattr(field, "choices", None)) else field.choices or ()
    if keys := [key for key, _ in choices if key]:
        words.append("One of " + ", ".join(inline_code(key) for key in keys) + ".")
    of_table = COLUMN_DESCRIPTIONS.get(field.model.__name__, {})
    meaning = field.help_text or of_table.get(field.name) or COLUMN_DESCRIPTIONS["any"].get(field.name, "")
    return " ".join([as_sentence(meaning), *words]).strip()


def _constraint(constraint: Any) -> str:
    return constraint.name.replace("_", " ")
