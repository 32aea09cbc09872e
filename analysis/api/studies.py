"""Studies, their design, and how collecting goes."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.http import Http404
from rest_framework.response import Response
from rest_framework.views import APIView

from annotators import models as answers
from annotators.places import monitor
from annotators.recruitment import sample
from studies import access
from studies.access import Action
from studies.design.definition import canonical, design_of, sha256_of
from studies.models import Design, Study
from studies.services import drafts

from . import serializers as shapes
from .base import StudyView, documented, json_object, listed
from .permissions import token_of
from .query import Parameter, page, paged, read_query, whole, words
from .renderers import RowErrors, row_error


class Studies(APIView):
    """Studies of which you are a member, and new drafts."""

    parameters = (
        *paged(),
        Parameter("state", words, "Only studies in this state.", None, str, tuple(Study.State.values)),
    )

    @documented("Studies that you have a role in", listed("Study", shapes.StudySerializer), parameters=parameters)
    def get(self, request):
        values = read_query(request, self.parameters)
        known = access.visible(request.user, Study.objects.all(), Action.KNOW, token=token_of(request))
        studies = known.select_related("owner", "clone_of").filter(pk__gt=values["cursor"][0]).order_by("pk")
        if values["state"] is not None:
            studies = studies.filter(state=values["state"])
        roles = access.roles_of(request.user)
        rows = [(study.pk, _study(study, request.user, roles)) for study in studies[: values["page_size"] + 1]]
        return page(request, values, rows)

    @documented("Create a draft", shapes.StudySerializer, request=shapes.StudySerializer, status=201)
    def post(self, request):
        read_query(request, ())
        access.check(request.user, Action.CREATE, token=token_of(request))
        serializer = shapes.StudySerializer(data=json_object(request))
        serializer.is_valid(raise_exception=True)
        serializer.validated_data.pop("version", None)
        study = drafts.create(Study(**serializer.validated_data), request.user)
        return Response(shapes.StudySerializer(_fresh(study)).data, status=201)


class StudyDetail(StudyView):
    """One study: what annotators read, what was planned, where it stands."""

    reads = Action.KNOW

    @documented("A study", shapes.StudySerializer)
    def get(self, request, code):
        return Response(_study(_fresh(self.study), request.user))

    @documented("Change fields of a draft", shapes.StudySerializer, request=shapes.StudySerializer(partial=True))
    def patch(self, request, code):
        serializer = shapes.StudySerializer(self.study, data=json_object(request), partial=True)
        serializer.is_valid(raise_exception=True)
        changes = dict(serializer.validated_data)
        version = changes.pop("version", None)
        if changes.pop("code", self.study.code) != self.study.code:
            raise RowErrors([row_error(None, "code", "The code of a study never changes.")])
        study = drafts.change(self.study, request.user, changes, version)
        return Response(shapes.StudySerializer(_fresh(study)).data)


def _study(study: Study, user, roles: dict[int, str] | None = None) -> dict[str, Any]:
    """All of it; to whoever codes blind what annotators read, because a study's own title tells its hypotheses."""
    found = shapes.StudySerializer(study).data
    if access.allowed(user, Action.LOOK, study, roles):
        return found
    return found | {"title": study.public_title, "exclusion_group": "", "preparation": {}}


def _fresh(study: Study) -> Study:
    return Study.objects.select_related("owner", "clone_of").get(pk=study.pk)


class StudyDesign(StudyView):
    """A version of the frozen design, as JSON text with its hash; of a draft, the design as it would be."""

    parameters = (Parameter("version", whole(1, 32767), "A version; the newest when absent.", None, int),)

    @documented("The design, as it is hashed", shapes.DesignSerializer, parameters=parameters)
    def get(self, request, code):
        designs = Design.objects.filter(study=self.study).order_by("-version")
        if self.values["version"] is not None:
            designs = designs.filter(version=self.values["version"])
        design = designs.first()
        if design is None and (self.values["version"] is not None or not self.study.is_draft):
            raise Http404
        if design is None:
            text = canonical(design_of(self.study))
            design = Design(version=None, canonical=text, sha256=sha256_of(text), at=None)
        return Response(shapes.DesignSerializer(design).data)


class Progress(StudyView):
    """How many places there are, and how many people took, left and finished them."""

    @documented("Counts of places and assignments", shapes.ProgressSerializer)
    def get(self, request, code):
        mine = answers.Assignment.objects.filter(study=self.study, origin="live")
        kept = Q(released_at=None)
        counts = mine.aggregate(
            claimed=models.Count("pk", filter=kept),
            started=models.Count("pk", filter=kept & Q(started_at__isnull=False)),
            submitted=models.Count("pk", filter=kept & Q(submitted_at__isnull=False)),
            released=models.Count("pk", filter=~kept),
            withdrawn=models.Count("pk", filter=Q(withdrawn_at__isnull=False)),
        )
        total, _ = monitor.places(self.study)
        progress = monitor.progress_of([self.study.pk]).get(self.study.pk)
        there = {"counted": progress.submitted if progress else 0, "places": total.wanted, "free": total.free}
        return Response(
            {"state": self.study.state, "target_n": self.study.target_n, **there, **counts, "late": total.late}
        )


class Sample(StudyView):
    """Who took part, as counts: the declared columns of a panel's demographic file. No person's values leave this site."""

    @documented("The table of the sample", shapes.SampleColumnSerializer(many=True))
    def get(self, request, code):
        return Response(shapes.SampleColumnSerializer(sample.table(self.study), many=True).data)
