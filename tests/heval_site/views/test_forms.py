"""Jinja renders the fields of forms as Django's own templates do."""

from html import unescape

from django import forms
from django.contrib.admin.widgets import AdminSplitDateTime
from django.forms.renderers import DjangoTemplates
from django.test.html import parse_html

from heval_site.views.forms import FieldRenderer

PAIRS = [("a", "one's <own>"), ("b", 'a "second" & more')]


class Everything(forms.Form):
    text = forms.CharField(label="A <label>", help_text="Say 'yes'.", max_length=9)
    long = forms.CharField(widget=forms.Textarea)
    one = forms.ChoiceField(choices=PAIRS)
    radio = forms.ChoiceField(choices=PAIRS, widget=forms.RadioSelect)
    several = forms.MultipleChoiceField(choices=[("group", PAIRS)], widget=forms.SelectMultiple)
    boxes = forms.MultipleChoiceField(choices=PAIRS, widget=forms.CheckboxSelectMultiple)
    yes = forms.BooleanField()
    file = forms.FileField(required=False)
    hidden = forms.CharField(widget=forms.HiddenInput(attrs={"data-x": "<'\">", "disabled": True}))
    moment = forms.SplitDateTimeField(widget=AdminSplitDateTime)


def test_fields_are_rendered_as_django_renders_them():
    data = {
        "text": "\"'<b>&amp;",
        "long": "\n</textarea>",
        "one": "b",
        "radio": "a",
        "several": ["a", "b"],
        "yes": "on",
    }
    for form in ({}, {"data": data}, {"initial": data}):
        ours, djangos = (Everything(**form, renderer=one()).as_div() for one in (FieldRenderer, DjangoTemplates))
        # The two write a quotation mark as different references to the same character.
        assert parse_html(ours.replace("&#39;", "&#x27;").replace("&#34;", "&quot;")) == parse_html(djangos), form
        assert unescape(ours).count("<input") == unescape(djangos).count("<input") > 8
