"""Assignments, answers, codings and exclusions."""

from typing import Any

from django.db import models
from django.db.models import F
from django.http import Http404
from rest_framework import serializers
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.codings import CODING_COLUMNS, codings_of, keyed_coding_rows
from analysis.data.export_requests import selection_for
from analysis.data.flat_rows.answers import find_damaged_cells
from analysis.data.flat_rows.selection import assignment_pseudonym
from annotators import models as answers
from annotators.places.exclusions import exclude, reverse_exclusion
from studies.access import Action
from studies.models import Study

from . import serializers as shapes
from .base import StudyView, document_operation, json_object, page_serializer
from .query import ORIGIN, WITHDRAWN, Parameter, integer_parser, page_parameters, page_response, parse_line
from .renderers import RowErrors, row_error


class AssignmentsView(StudyView):
    """Annotators with batches: where they stand and when. Names are pseudonyms of this study."""

    parameters = (
        *page_parameters(),
        Parameter(
            "origin", ORIGIN.read, "Origins, by commas; all when absent.", tuple(answers.Assignment.Origin.values)
        ),
        Parameter("arm", parse_line, "Only assignments in this arm."),
        Parameter("batch", integer_parser(), "Only assignments with the batch of this number.", None, int),
    )

    @document_operation(
        "Assignments", page_serializer("Assignment", shapes.AssignmentSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        rows = answers.Assignment.objects.filter(study=self.study, origin__in=self.values["origin"])
        if self.values["arm"] is not None:
            rows = rows.filter(batch__arm__name=self.values["arm"])
        if self.values["batch"] is not None:
            rows = rows.filter(batch__number=self.values["batch"])
        found = exports.page_of_assignments(rows, self.study, self.after()[0], self.values["page_size"] + 1)
        return page_response(request, self.values, found)


class ResponsesView(StudyView):
    """The flat rows of the exports, by pages. For all of a study's answers take an export: it sees one moment."""

    read_action = Action.EXPORT
    parameters = (
        *page_parameters(2),
        ORIGIN,
        WITHDRAWN,
        Parameter("section", integer_parser(0, 32767), "Only answers in the section at this position.", None, int),
        Parameter("question", parse_line, "Only answers to the question with this key."),
        Parameter("system", parse_line, "Only answers about an output of this system."),
        Parameter("prompt", parse_line, "Only answers about items with this prompt."),
        Parameter("arm", parse_line, "Only answers in this arm."),
        Parameter("batch", integer_parser(), "Only answers in the batch of this number.", None, int),
    )
    filter_paths = {
        "section": "question__section__position",
        "question": "question__key",
        "system": "exposure__output__system__name",
        "prompt": "item__prompt__key",
        "arm": "assignment__batch__arm__name",
        "batch": "assignment__batch__number",
    }

    @document_operation(
        "Answers, one flat row a judgement",
        page_serializer(
            "Response",
            shapes.ResponseSerializer,
            n_problems=serializers.IntegerField(),
            problems=serializers.JSONField(),
        ),
        parameters=parameters,
        tag="answers",
    )
    def get(self, request, code):
        chosen = self.values["origin"], self.values["withdrawn"]
        selection = selection_for("responses", self.study, *chosen, by=request.user)
        wanted = {path: self.values[name] for name, path in self.filter_paths.items() if self.values[name] is not None}
        rows = selection.responses.filter(**wanted)
        found = exports.page_of_responses(rows, self.study, self.after(), self.values["page_size"] + 1)
        n, problems = find_damaged_cells(selection) if self.after() == (0, 0) else (0, [])
        return page_response(request, self.values, found, n_problems=n, problems=problems)


class CodingsView(StudyView):
    """What coders said of explanations and of work, by pages, in the order in which it was stored. Coders are seats, not names."""

    read_action = Action.EXPORT
    parameters = (
        *page_parameters(),
        ORIGIN,
        WITHDRAWN,
        Parameter("sample", integer_parser(1), "Only codings of the sample of this number.", None, int),
    )

    @document_operation(
        "Codings, one flat row each",
        page_serializer("Coding", shapes.CodingSerializer),
        parameters=parameters,
        tag="answers",
    )
    def get(self, request, code):
        chosen = self.values["origin"], self.values["withdrawn"]
        rows = codings_of(selection_for("codings", self.study, *chosen, by=request.user))
        if self.values["sample"] is not None:
            rows = rows.filter(item__sample__number=self.values["sample"])
        rows = rows.filter(pk__gt=self.after()[0]).order_by("pk")[: self.values["page_size"] + 1]
        names = [column.name for column in CODING_COLUMNS]
        found = [(key, dict(zip(names, cells, strict=True))) for key, cells in keyed_coding_rows(self.study, rows)]
        return page_response(request, self.values, found)


class ExclusionsView(StudyView):
    """What people decided to leave out. Rules are part of the design; what they find is in the analyses."""

    write_action = Action.MANAGE_ASSIGNMENTS
    parameters = page_parameters()

    @document_operation(
        "Exclusions", page_serializer("Exclusion", shapes.ExclusionSerializer), parameters=parameters, tag="answers"
    )
    def get(self, request, code):
        return self.list_response(_exclusions_of(self.study), _exclusion_row)

    @document_operation(
        "Leave assignments out, all of them or none",
        shapes.ExclusionsCreatedSerializer,
        request=shapes.ExclusionRequestSerializer,
        status=201,
        tag="answers",
    )
    def post(self, request, code):
        serializer = shapes.ExclusionRequestSerializer(data=json_object(request))
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        chosen = _assignments_by_name(self.study, asked["assignments"])
        made = exclude(chosen, asked["reason"], request.user, asked["note"], asked["reopen"])
        rows = [
            _exclusion_row(row)
            for row in _exclusions_of(self.study).filter(pk__in=[one.pk for one in made]).order_by("pk")
        ]
        return Response({"created": rows}, status=201 if rows else 200)


class ReverseExclusionView(StudyView):
    """An exclusion is taken back by another row; both stay on record."""

    write_action = Action.MANAGE_ASSIGNMENTS

    @document_operation(
        "Take an exclusion back",
        shapes.ExclusionsCreatedSerializer,
        request=shapes.ReverseExclusionSerializer,
        status=201,
        tag="answers",
    )
    def post(self, request, code, number):
        serializer = shapes.ReverseExclusionSerializer(data=json_object(request))
        serializer.is_valid(raise_exception=True)
        rows = answers.Exclusion.objects.filter(assignment__study=self.study, pk=number)
        found = rows.select_related("assignment__study").first()
        if found is None:
            raise Http404
        made = reverse_exclusion(found, request.user, serializer.validated_data["note"])
        return Response({"created": [_exclusion_row(_exclusions_of(self.study).get(pk=made.pk))]}, status=201)


def _exclusions_of(study: Study) -> models.QuerySet:
    rows = answers.Exclusion.objects.filter(assignment__study=study).select_related("assignment", "by")
    return rows.annotate(reversal=F("reversed_by__pk"))


def _assignments_by_name(study: Study, names: list[str]) -> list[answers.Assignment]:
    """The assignments of these names. A name is made from the code and leads back to it only through all of them."""
    codes = answers.Assignment.objects.filter(study=study).values_list("code", flat=True)
    by_name = {assignment_pseudonym(code): code for code in codes}
    errors = [
        row_error(row, "assignments", f"The study has no assignment “{name}”.")
        for row, name in enumerate(names, 1)
        if name not in by_name
    ]
    if errors:
        raise RowErrors(errors)
    return list(answers.Assignment.objects.filter(code__in={by_name[name] for name in names}))


def _exclusion_row(row: answers.Exclusion) -> dict[str, Any]:
    return {
        "number": row.pk,
        "assignment": assignment_pseudonym(row.assignment.code),
        "reason": row.reason,
        "note": row.note,
        "by": row.by.get_username(),
        "at": row.at,
        "reverses": row.reverses_id,
        "is_standing": row.reverses_id is None and row.reversal is None,
    }
