"""API views of coding: researchers draw samples, and coders code them. A coder sees no arm, no truth and no other coder."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from analysis.coding import samples
from analysis.coding.admin import STARTING_CODEBOOKS, DrawSampleForm
from analysis.coding.codebook import Codebook
from analysis.coding.models import CodingItem, CodingSample
from analysis.coding.samples import ADJUDICATOR_SEAT, CurrentCoding
from annotators.models import Assignment
from studies.access import Action, allowed_active_member_users, is_allowed
from studies.services.lifecycle import FieldsRefused

from . import serializers as shapes
from .base import PostMixin, StudyView
from .drafts import check_form

Codings = Mapping[int, Mapping[int, CurrentCoding]]
DRAWN_ORIGINS = tuple(origin for origin in Assignment.Origin.values if origin != Assignment.Origin.TEST)


class CodebookLabelSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="What a coding names.")
    category = serializers.CharField(help_text="The category of the label.")
    name = serializers.CharField(help_text="The label as coders read it.")
    description = serializers.CharField(allow_blank=True, help_text="When it applies.")
    example = serializers.CharField(allow_blank=True, help_text="A text to which it applies.")


class SeatSerializer(serializers.Serializer):
    seat = serializers.IntegerField(help_text="Number of the coder's seat. Seat 3 decides where the first two differ.")
    coder = serializers.CharField(help_text="User name.")
    done = serializers.IntegerField(help_text="Items that this coder has coded.")
    items = serializers.IntegerField(help_text="Items of this coder.")


class CodingSampleSerializer(serializers.Serializer):
    """A sample to code. A coder who may not see the study reads how it was drawn as null, and only their own seat."""

    number = serializers.IntegerField(help_text="Number of the sample in the study.")
    kind = serializers.ChoiceField(CodingSample.Kind.choices, help_text="What is coded.")
    rule = serializers.ChoiceField(
        CodingSample.Rule.choices, allow_null=True, help_text="What counts where two coders differ."
    )
    per_arm = serializers.IntegerField(allow_null=True, help_text="Annotators drawn of each arm.")
    origin = serializers.ChoiceField(DRAWN_ORIGINS, allow_null=True, help_text="Whose answers were drawn.")
    labels = CodebookLabelSerializer(many=True, help_text="The codebook.")
    seats = SeatSerializer(many=True, help_text="The coders, and how far they are.")


class DrawSerializer(shapes.StrictMixin, serializers.Serializer):
    kind = shapes.ListedField(choices=CodingSample.Kind.choices, help_text="What is coded.")
    coders = shapes.ListField(
        child=shapes.NameField(),
        min_length=2,
        max_length=3,
        help_text="User names of two coders; of three if the third decides.",
    )
    per_arm = shapes.StrictIntegerField(
        min_value=1, max_value=10_000, default=50, help_text="Annotators of each arm, drawn at random."
    )
    origin = shapes.ListedField(choices=DRAWN_ORIGINS, default="live", help_text="Whose answers.")
    rule = shapes.ListedField(
        choices=CodingSample.Rule.choices,
        default=CodingSample.Rule.UNION.value,
        help_text="What counts where two differ.",
    )
    codebook = shapes.CleanTextField(
        required=False,
        help_text="One label per line: category | key | label | description | example. Default: heval's for this kind.",
    )
    left_out = shapes.TextField(
        required=False, max_length=200, help_text="Categories that are not counted, separated by commas."
    )


class CodingItemSerializer(serializers.Serializer):
    number = serializers.IntegerField(help_text="Number of the item in the sample.")
    labels = serializers.ListField(child=serializers.CharField(), help_text="Your labels. Empty before you code it.")
    is_none = serializers.BooleanField(help_text="You coded that no label applies.")
    revision = serializers.IntegerField(help_text="How often you coded it. Send it with your next coding.")


class CodedTextSerializer(serializers.Serializer):
    asked = serializers.CharField(allow_blank=True, help_text="The question, if the work is reviewed.")
    said = serializers.CharField(help_text="What the annotator wrote.")
    text = serializers.CharField(allow_blank=True, help_text="The text that it is about, if the work is reviewed.")
    answers = serializers.ListField(child=serializers.CharField(), help_text="The answers about the same text.")
    hints = serializers.ListField(child=serializers.CharField(), help_text="What heval noticed.")


class CodingItemDetailSerializer(CodingItemSerializer):
    texts = CodedTextSerializer(many=True, help_text="What you code.")
    others = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Only for the third coder: the labels of the other two, in no order.",
    )


class StoreCodingSerializer(shapes.StrictMixin, serializers.Serializer):
    labels = shapes.ListField(child=shapes.TextField(max_length=200), max_length=200, help_text="Keys of labels.")
    is_none = shapes.StrictBooleanField(default=False, help_text="true: no label applies.")
    revision = shapes.StrictIntegerField(
        min_value=0, max_value=10**5, help_text="The revision that you read, so that no other coding is replaced."
    )


class SamplesView(StudyView):
    tag = "coding"
    read_action = Action.VIEW_BASICS
    queryset = CodingSample.objects.prefetch_related("seats__user")
    lookup_field = lookup_url_kwarg = "number"
    serializer_class: Any = CodingSampleSerializer

    def get_queryset(self) -> QuerySet[CodingSample]:
        """Return the samples of a study to those who see it, and to coders their own."""
        self.is_looking = is_allowed(self.request.user, Action.VIEW, self.study)
        rows = super().get_queryset()
        return rows if self.is_looking else rows.filter(seats__user=self.request.user)

    def shown(self, sample: CodingSample) -> dict[str, Any]:
        codings = samples.current_codings_by_item(sample)
        seats = [seat for seat in sample.seats.all() if self.is_looking or seat.user_id == self.request.user.pk]
        items = {seat.number: samples.items_of_seat(sample, seat.number, codings) for seat in seats}
        return {
            "number": sample.number,
            "kind": sample.kind,
            **{name: getattr(sample, name) if self.is_looking else None for name in ("rule", "per_arm", "origin")},
            "labels": Codebook.from_json(sample.codebook).labels,
            "seats": [
                {
                    "seat": seat.number,
                    "coder": seat.user.username,
                    "done": sum(seat.number in codings.get(item.pk, {}) for item in items[seat.number]),
                    "items": len(items[seat.number]),
                }
                for seat in seats
            ],
        }


class CodingSamplesView(PostMixin, SamplesView, ListAPIView):
    """The samples to code. POST draws one, at random and in random order."""

    write_action = Action.SAMPLE
    summaries = {"GET": "Samples to code", "POST": "Draw a sample to code"}
    body_serializer_class = DrawSerializer
    success_status = 201

    def perform(self, coders: list[str], **sent: Any) -> dict[str, Any]:
        members = {person.username: person.pk for person in allowed_active_member_users(Action.CODE, self.study)}
        if unknown := [name for name in coders if name not in members]:
            listed = ", ".join(sorted(members)) or "nobody"
            raise FieldsRefused(
                {"coders": f"“{unknown[0]}” may not code in this study. Send names of those who may: {listed}."}
            )
        usual = STARTING_CODEBOOKS[sent["kind"]]
        seats = dict(zip(("first", "second", "third"), (str(members[name]) for name in coders), strict=False))
        start = {"codebook": "\n".join(usual.as_lines()), "left_out": ", ".join(usual.left_out)}
        form = DrawSampleForm(self.study, start | sent | seats)
        check_form(form, dict.fromkeys(("first", "second", "third"), "coders"))
        cleaned = {name: form.cleaned_data[name] for name in ("kind", "rule", "codebook", "per_arm", "origin")}
        sample = samples.draw_coding_sample(self.study, coders=form.coders, by=self.request.user, **cleaned)
        return self.shown(self.get_queryset().get(pk=sample.pk))

    def list(self, request, code):
        return self.get_paginated_response([self.get_serializer(self.shown(row)).data for row in self.get_page()])


class CodingSampleDetailView(SamplesView, RetrieveAPIView):
    """One sample, with its codebook."""

    summaries = {"GET": "A sample to code"}

    def get_object(self) -> Any:
        return self.shown(super().get_object())


class SeatView(SamplesView):
    """What a coder of a sample reads and writes."""

    write_action = Action.CODE
    serializer_class: Any = CodingItemSerializer

    @cached_property
    def sample(self) -> CodingSample:
        return super().get_object()

    @cached_property
    def seat(self) -> int:
        seat = samples.coder_seat_number(self.sample, self.request.user)
        if seat is None:
            raise Http404("You are not a coder of this sample.")
        return seat

    def read_items(self) -> tuple[list[CodingItem], Codings]:
        seat, codings = self.seat, samples.current_codings_by_item(self.sample)
        return samples.items_of_seat(self.sample, seat, codings), codings

    def own(self, item: CodingItem, codings: Codings) -> dict[str, Any]:
        coding = codings.get(item.pk, {}).get(self.seat)
        return {
            "number": item.number,
            "labels": sorted(coding.labels) if coding else [],
            "is_none": bool(coding and not coding.labels),
            "revision": coding.revision if coding else 0,
        }


class CodingItemsView(SeatView, ListAPIView):
    """The items of a sample that you code, in their order. The third coder has those on which the first two differ."""

    summaries = {"GET": "Items that you code"}

    def list(self, request, code, number):
        items, codings = self.read_items()
        later = [item for item in items if item.number > self.values["cursor"][0]][: self.rows_needed]
        return self.page_of((item.number, self.own(item, codings)) for item in later)


class CodingItemView(PostMixin, SeatView, RetrieveAPIView):
    """One item that you code. POST stores your labels. It is refused if you coded the item again since this ``revision``."""

    summaries = {"GET": "An item to code", "POST": "Code an item"}
    serializer_class = CodingItemDetailSerializer
    body_serializer_class = StoreCodingSerializer

    def get_object(self) -> dict[str, Any]:
        item, codings = self._item()
        both = codings.get(item.pk, {})
        others = sorted(sorted(both[n].labels) for n in (1, 2)) if self.seat == ADJUDICATOR_SEAT else []
        texts = samples.explanations_shown_to_coder(self.sample, item)
        return self.own(item, codings) | {"texts": texts, "others": others}

    def _item(self) -> tuple[CodingItem, Codings]:
        items, codings = self.read_items()
        found = next((item for item in items if item.number == self.kwargs["item"]), None)
        if found is None:
            raise Http404("This item does not exist, or you do not code it.")
        found.sample = self.sample
        return found, codings

    def perform(self, labels: list[str], is_none: bool, revision: int) -> dict[str, Any]:
        item, _ = self._item()
        samples.store_coding(item, self.request.user, labels, is_none, revision)
        return self.get_object()
