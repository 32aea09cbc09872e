"""API views of links: how people come to a study, and what they are promised."""

from decimal import Decimal
from typing import Any

from django.conf import settings as site_settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.generics import ListAPIView, RetrieveAPIView

from annotators.models import OutcomePay, Recruitment
from annotators.participation import link_actions
from annotators.pay.promises import pay_obstacles
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.links import recruitment_link_state
from studies.access import Action
from studies.models import Arm
from studies.services.lifecycle import FieldsRefused

from . import act_serializers
from .base import PostMixin, StudyView
from .uploads import require_json_object


class LinkView(StudyView):
    """A link. Its address lets people take part, so only those who may recruit read it."""

    tag = "links"
    read_action = write_action = Action.RECRUIT
    queryset = Recruitment.objects.prefetch_related("outcome_pays", "recruitment_arms__arm").order_by("pk")
    lookup_field = "key"
    serializer_class = act_serializers.LinkSerializer
    result_serializer_class = act_serializers.LinkSerializer

    def shown(self, link: Recruitment) -> dict[str, Any]:
        """Return what the API shows of a link."""
        channel = REGISTRY.get(link.channel)
        base = f"{site_settings.SITE_URL}{reverse('entry', args=[link.key])}"
        link.study = self.study
        return {
            **{name: getattr(link, name) for name in ("key", "channel", "pool", "wanted", "reward", "currency")},
            **{name: getattr(link, name) for name in ("opens_at", "closes_at", "stopped_at", "settings")},
            "address": base,
            "addresses": dict(channel.links(link, base)) if channel else {},
            "state": recruitment_link_state(self.study, link).value,
            "missing": [
                *(channel.obstacles(link) if channel else ["This channel is not installed."]),
                *pay_obstacles(link),
            ],
            "early_ends": {row.outcome: {"rule": row.rule, "amount": row.amount} for row in link.outcome_pays.all()},
            "arms": sorted(row.arm.name for row in link.recruitment_arms.all()),
        }

    def change(self, link: Recruitment, sent: dict[str, Any]) -> Recruitment:
        """Store what is sent of a link. Raise FieldsRefused: then nothing is stored."""
        changed = [name for name in sent if name not in ("settings", "early_ends", "arms")]
        for name in changed:
            setattr(link, name, sent[name])
        if changed_settings := sent.get("settings"):
            link.settings = _checked_settings(link, changed_settings)
            changed.append("settings")
        promises: dict[str, tuple[str, Decimal | None]] = {
            row.outcome: (row.rule, row.amount) for row in OutcomePay.objects.filter(recruitment=link)
        }
        promises |= _checked_promises(sent.get("early_ends", {}))
        try:
            link.full_clean(exclude=["study"], validate_constraints=False)
        except ValidationError as refused:
            raise FieldsRefused({name: " ".join(errors) for name, errors in refused.message_dict.items()}) from None
        if errors := link_actions.find_link_errors(link, promises):
            raise FieldsRefused(
                {f"early_ends.{name}" if name in promises else name: text for name, text in errors.items()}
            )
        arms = None
        if "arms" in sent:
            arms = self._arms(sent["arms"])
            changed.append("arms")
        link_actions.update_link(link, self.request.user, changed, promises, arms)
        return self.get_queryset().get(pk=link.pk)

    def _arms(self, names: list[str]) -> list[Arm]:
        arms = {arm.name: arm for arm in self.study.arms.all()}
        if unknown := [name for name in names if name not in arms]:
            raise FieldsRefused({"arms": f"The study has no arm “{unknown[0]}”. Send one of: {', '.join(arms)}."})
        return [arms[name] for name in names]


def _checked_settings(link: Recruitment, changed: dict[str, Any]) -> dict[str, Any]:
    form_class = REGISTRY[link.channel].settings_form
    known = form_class().fields if form_class else {}
    if unknown := [name for name in changed if name not in known]:
        listed = ", ".join(known) or "none"
        raise FieldsRefused(
            {f"settings.{unknown[0]}": f"This channel has no such setting. Leave it out. Its settings are: {listed}."}
        )
    form = form_class(data=link.settings | changed)
    if not form.is_valid():
        raise FieldsRefused({f"settings.{name}": " ".join(errors) for name, errors in form.errors.items()})
    return link.settings | {name: form.cleaned_data[name] for name in changed}


def _checked_promises(sent: dict[str, Any]) -> dict[str, tuple[str, Decimal | None]]:
    """Return the promises of early ends. Only a rule of an amount has one."""
    promises = {}
    for outcome, promise in sent.items():
        name, rule, amount = f"early_ends.{outcome}", promise.get("rule"), promise.get("amount")
        if outcome not in OutcomePay.Outcome.values:
            raise FieldsRefused({name: f"There is no such end. Send one of {', '.join(OutcomePay.Outcome.values)}."})
        if rule is None:
            raise FieldsRefused(
                {f"{name}.rule": f"A rule is missing. Send one of {', '.join(OutcomePay.Rule.values)}."}
            )
        if (rule == OutcomePay.Rule.AMOUNT) != (amount is not None):
            raise FieldsRefused(
                {f"{name}.amount": f"Only the rule “{OutcomePay.Rule.AMOUNT}” has an amount, and it needs one."}
            )
        promises[outcome] = rule, amount
    return promises


class LinksView(PostMixin, LinkView, ListAPIView):
    """The links of a study. POST makes one, with the usual settings of its channel where nothing else is sent."""

    summaries = {"GET": "Links of a study", "POST": "Make a link"}
    body_serializer_class = act_serializers.NewLinkSerializer
    success_status = 201

    def list(self, request, code):
        return self.get_paginated_response([self.get_serializer(self.shown(link)).data for link in self.get_page()])

    @transaction.atomic
    def perform(self, channel: str, **sent: Any) -> dict[str, Any]:
        offered = [one.slug for one in REGISTRY.values() if one.takes_new_links]
        if channel not in offered:
            raise FieldsRefused({"channel": f"There is no channel “{channel}”. Send one of {', '.join(offered)}."})
        wanted = self.study.target_n if REGISTRY[channel].has_form else None
        link = link_actions.create_link(
            Recruitment(study=self.study, channel=channel, wanted=wanted), self.request.user
        )
        return self.shown(self.change(link, sent))


class LinkDetailView(LinkView, RetrieveAPIView):
    """One link. After people have come, what it promises can only rise."""

    summaries = {"GET": "A link", "PATCH": "Change a link", "DELETE": "Delete a link by which nobody came"}
    body_serializer_class = act_serializers.LinkChangeSerializer

    def get(self, request, code, key):
        return self.answer(self.shown(self.get_object()))

    def patch(self, request, code, key):
        link = self.get_object()
        return self.answer(self.shown(self.change(link, self.check_fields(require_json_object(request), link))))

    def delete(self, request, code, key):
        """Delete a link by which nobody came."""
        link = self.get_object()
        shown = self.shown(link)
        link_actions.delete_link(link, request.user)
        return self.answer(shown)


class StopLinkView(PostMixin, LinkView):
    """Let nobody new come by the link. People who have started can finish."""

    summaries = {"POST": "Stop a link"}
    step = staticmethod(link_actions.stop_link)

    def perform(self) -> dict[str, Any]:
        link = self.get_object()
        self.step(link, self.request.user)
        return self.shown(self.get_object())


class ReopenLinkView(StopLinkView):
    """Let new people come by a stopped link again."""

    summaries = {"POST": "Open a stopped link again"}
    step = staticmethod(link_actions.reopen_link)


class OfLinkView(StudyView):
    """A resource of one link, which is loaded before any method runs."""

    link: Recruitment

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.link = get_object_or_404(self.study.recruitments, key=kwargs["key"], channel__in=REGISTRY)
        self.link.study = self.study
