"""Strict fields of the serializers. Each refusal says what to send instead."""

from django.db import models
from rest_framework import serializers

from studies.stimuli.texts import TextRefused, clean_name, clean_text

MAX_TEXT = 1_000_000
# Infinity and NaN are outside.
LARGEST = 1e12


class _Refusals:
    """The refusals that every field has."""

    default_error_messages = {
        "required": "This field is missing. Send it.",
        "null": "This field must not be null. Send a value.",
    }


class CleanTextField(_Refusals, serializers.CharField):
    """A text, cleaned as in the rest of heval. Only JSON strings are accepted; other types are not converted."""

    def __init__(self, **options):
        super().__init__(**{"trim_whitespace": False, **options})

    def run_validation(self, data=serializers.empty):
        if data is serializers.empty or data is None:
            return super().run_validation(data)
        try:
            text = clean_text(data, is_required=not self.allow_blank, max_length=self.max_length or MAX_TEXT)
        except TextRefused as refused:
            raise serializers.ValidationError(_refusal_message(refused)) from None
        return text if text == "" and self.allow_blank else super().run_validation(text)


class NameField(_Refusals, serializers.CharField):
    """A name or key of one line."""

    def run_validation(self, data=serializers.empty):
        if data is serializers.empty or data is None:
            return super().run_validation(data)
        try:
            return super().run_validation(clean_name(data, max_length=self.max_length or 200))
        except TextRefused as refused:
            raise serializers.ValidationError(_refusal_message(refused)) from None


def _refusal_message(refused: TextRefused) -> str:
    """Return the message without the field name, because the problem already names the field."""
    return str(refused).partition(": ")[2] or str(refused)


class TextField(_Refusals, serializers.CharField):
    """A short text."""

    default_error_messages = {
        "invalid": "This is not a text. Send a text in quotation marks.",
        "blank": "This text is empty. Send at least one character.",
        "max_length": "This text has more than {max_length} characters. Shorten it.",
    }


class StrictIntegerField(_Refusals, serializers.IntegerField):
    """A JSON integer. '3', 3.0, true and non-ASCII digits are refused."""

    default_error_messages = {
        "invalid": "This is not a JSON integer. Send an integer without quotation marks and decimals.",
        "max_value": "This number must be less than or equal to {max_value}. Send a smaller one.",
        "min_value": "This number must be greater than or equal to {min_value}. Send a larger one.",
    }

    def to_internal_value(self, data):
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictDecimalField(_Refusals, serializers.DecimalField):
    """A decimal number. '' is refused and is not read as null."""

    default_error_messages = {
        "invalid": "This is not a decimal number. Send one, for example 4.50.",
        "min_value": "This amount must be greater than or equal to {min_value}. Send a larger one.",
        "max_digits": "The number has more than {max_digits} digits. Send a shorter one.",
        "max_decimal_places": "The number has more than {max_decimal_places} decimals. Round it.",
        "max_whole_digits": "The number has more than {max_whole_digits} digits before the point. Send a smaller one.",
        "max_string_length": "The number has more than 1000 characters. Send a shorter one.",
    }

    def validate_empty_values(self, data):
        if isinstance(data, str) and not data.strip():
            self.fail("invalid")
        return super().validate_empty_values(data)


class FiniteField(_Refusals, serializers.FloatField):
    """A JSON number. Infinity and numbers in quotation marks are refused."""

    default_error_messages = {"invalid": "This is not a JSON number. Send a finite number without quotation marks."}

    def to_internal_value(self, data):
        if isinstance(data, bool) or not isinstance(data, int | float) or not abs(data) < LARGEST:
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(_Refusals, serializers.BooleanField):
    default_error_messages = {"invalid": "This is neither true nor false. Send one of them without quotation marks."}

    def to_internal_value(self, data):
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class ListedField(_Refusals, serializers.ChoiceField):
    """One of a few values. The refusal lists them."""

    default_error_messages = {"invalid_choice": "“{input}” is not a possible value. Send one of {choices}."}

    def fail(self, key, **values):
        super().fail(key, choices=", ".join(map(str, self.choices)), **values)


class DateField(_Refusals, serializers.DateField):
    default_error_messages = {"invalid": "This is not a date. Send one, for example 2026-12-31."}


class CodeField(_Refusals, serializers.UUIDField):
    default_error_messages = {"invalid": "“{value}” is not a UUID. Send one, or leave the field out."}


class ObjectField(_Refusals, serializers.DictField):
    default_error_messages = {"not_a_dict": "This is not a JSON object. Send an object with names and values."}


class ListField(_Refusals, serializers.ListField):
    default_error_messages = {
        "not_a_list": "This is not a JSON list. Send the values in square brackets.",
        "min_length": "The list has fewer than {min_length} values. Send more.",
        "max_length": "The list has more than {max_length} values. Send fewer.",
    }


class StrictMixin(_Refusals):
    """A serializer with the fields of this module. It refuses fields that it does not know."""

    default_error_messages = {"invalid": "This is not a JSON object. Send an object with the fields of this resource."}
    serializer_choice_field = ListedField
    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: CleanTextField,
        models.TextField: CleanTextField,
        models.IntegerField: StrictIntegerField,
        models.PositiveIntegerField: StrictIntegerField,
        models.PositiveSmallIntegerField: StrictIntegerField,
        models.PositiveBigIntegerField: StrictIntegerField,
        models.BooleanField: StrictBooleanField,
        models.DecimalField: StrictDecimalField,
        models.DateField: DateField,
    }

    def to_internal_value(self, data):
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError(
                {name[:80]: ["This resource has no such field. Remove it."] for name in unknown}
            )
        return super().to_internal_value(data)
