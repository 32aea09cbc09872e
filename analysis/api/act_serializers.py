"""Serializers of what is done to a whole study: its question, texts, checklist, launch, links, members and log."""

from django.utils import timezone
from rest_framework import serializers

from analysis.data.flat_rows import assignment_pseudonym
from analysis.models import ApiToken
from annotators.models import OutcomePay, Recruitment
from studies.admin.texts import TEXT_FACTS
from studies.imports.study_templates import OWN_PREFIX
from studies.models import AuditEvent, OwnTemplate, ResearcherFacts

from .serializers import (
    CleanTextField,
    CodeField,
    ListedField,
    ListField,
    NameField,
    ObjectField,
    StrictBooleanField,
    StrictDecimalField,
    StrictIntegerField,
    StrictMixin,
    TextField,
    TimeField,
)


class DesignProblemSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="What a launch names to accept a warning.")
    text = serializers.CharField()
    field = serializers.CharField(allow_blank=True, help_text="The field of the study that it is about, if it is one.")
    is_blocking = serializers.BooleanField(help_text="A launch is impossible. Otherwise it is a warning.")


class ChecklistSerializer(serializers.Serializer):
    is_ready = serializers.BooleanField(help_text="Nothing is missing. Warnings may be left.")
    problems = DesignProblemSerializer(many=True)
    populations = serializers.ListField(
        child=serializers.CharField(),
        help_text="What the planned comparisons can be about. Empty while something is missing.",
    )
    page = serializers.URLField(help_text="The page on which a person reads this list, and launches the study.")


class LaunchSerializer(StrictMixin, serializers.Serializer):
    acknowledged = ListField(
        child=TextField(max_length=2000),
        required=False,
        max_length=200,
        help_text="The key of each warning of the checklist that you accept.",
    )


class CardSerializer(serializers.Serializer):
    card = serializers.CharField(source="slug")
    name = serializers.CharField(source="card.name")
    tells = serializers.CharField(source="card.tells")
    cost = serializers.CharField()
    reason = serializers.CharField(
        allow_blank=True, help_text="Why this card cannot be chosen for these texts, or empty."
    )


class CardChoiceSerializer(StrictMixin, serializers.Serializer):
    """The choices of the page Question. ``criterion``: the key of one of heval's, or "own" with the fields of your own wording."""

    card = NameField()
    criterion = NameField(required=False, help_text="Default: the first of heval's criteria.")
    more = ListField(
        child=NameField(), required=False, max_length=20, help_text="More criteria, if the card takes several."
    )
    own_name = NameField(required=False)
    own_definition = CleanTextField(required=False, max_length=1000)
    own_low = NameField(required=False, max_length=80)
    own_high = NameField(required=False, max_length=80)
    own_question = CleanTextField(required=False, max_length=500)
    baseline = NameField(required=False, help_text="The system with which the others are compared. Default: all pairs.")
    m = StrictIntegerField(required=False, min_value=1, max_value=100, help_text="Pages for each person.")


class FactsSerializer(StrictMixin, serializers.ModelSerializer):
    """What the texts say about the researchers."""

    class Meta:
        model = ResearcherFacts
        fields = TEXT_FACTS
        extra_kwargs = {name: {"required": False} for name in TEXT_FACTS}


class TextsSerializer(StrictMixin, serializers.Serializer):
    public_title = NameField(required=False, help_text="What annotators see at the top of each page.")
    purpose = CleanTextField(required=False, allow_blank=True)
    consent = CleanTextField(required=False, allow_blank=True, help_text="Markdown. Default: heval's model text.")
    asks_about_ai_tools = StrictBooleanField(required=False)
    facts = FactsSerializer(required=False)


class BundleSerializer(serializers.Serializer):
    """A bundle: ``schema`` names its version, and the other parts are described in the documentation."""

    schema = serializers.CharField()
    study = serializers.DictField()
    sections = serializers.ListField(child=serializers.DictField())


class SentBundleSerializer(serializers.Serializer):
    """A bundle, as another study's bundle has it. Parts that are left out are empty."""

    schema = serializers.CharField(help_text="heval.bundle/1.")
    study = serializers.DictField(help_text="Columns of the study.")
    sections = serializers.ListField(child=serializers.DictField(), help_text="Sections with their questions.")


class BothDirectionsSerializer(StrictMixin, serializers.Serializer):
    with_tau = StrictBooleanField(
        default=False,
        help_text="true: also leave out people whose two answers to a pair add up to more than tau = 1.1.",
    )


class AddedQuestionsSerializer(serializers.Serializer):
    added = serializers.IntegerField(help_text="How many questions were added.")


class EarlyEndSerializer(StrictMixin, serializers.Serializer):
    rule = ListedField(choices=OutcomePay.Rule.choices)
    amount = StrictDecimalField(
        max_digits=7, decimal_places=2, min_value=0, required=False, allow_null=True, default=None
    )


class LinkSerializer(serializers.ModelSerializer):
    """A link by which people come. ``address`` is what you give to people, or to the panel with the parameters that it fills in."""

    address = serializers.CharField()
    addresses = serializers.DictField(
        child=serializers.CharField(), help_text="The full address for each purpose of the channel."
    )
    state = serializers.CharField(help_text="open, or why nobody can start by it now.")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="What the link needs before people can come."
    )
    settings = serializers.DictField(help_text="The settings of the channel.")
    early_ends = serializers.DictField(
        child=EarlyEndSerializer(), help_text="What people get who do not reach the last page."
    )
    arms = serializers.ListField(child=serializers.CharField(), help_text="Names of the arms. Empty: all.")

    class Meta:
        model = Recruitment
        fields = (
            "key",
            "channel",
            "address",
            "addresses",
            "state",
            "missing",
            "pool",
            "wanted",
            "reward",
            "currency",
            "opens_at",
            "closes_at",
            "settings",
            "early_ends",
            "arms",
            "stopped_at",
        )


class LinkChangeSerializer(StrictMixin, serializers.ModelSerializer):
    settings = ObjectField(required=False, help_text="Settings of the channel that change. The others stay.")
    early_ends = ObjectField(child=EarlyEndSerializer(), required=False, help_text="Early ends whose pay changes.")
    arms = ListField(child=NameField(), required=False, max_length=100)
    opens_at = TimeField(required=False, allow_null=True)
    closes_at = TimeField(required=False, allow_null=True)

    class Meta:
        model = Recruitment
        fields = (
            "key",
            "pool",
            "wanted",
            "reward",
            "currency",
            "opens_at",
            "closes_at",
            "settings",
            "early_ends",
            "arms",
        )
        extra_kwargs = {name: {"required": False} for name in ("key", "pool", "wanted", "reward", "currency")}


class NewLinkSerializer(LinkChangeSerializer):
    channel = NameField(help_text="How people come, such as open_link, prolific or generic.")

    class Meta(LinkChangeSerializer.Meta):
        fields = ("channel", *LinkChangeSerializer.Meta.fields)


class AmendSerializer(StrictMixin, serializers.Serializer):
    """What changes, by the names of arms and questions. A question is named by the position of its section and its key: 1.overall."""

    reason = CleanTextField(max_length=1000)
    study = ObjectField(required=False)
    arms = ObjectField(child=ObjectField(), required=False)
    questions = ObjectField(child=ObjectField(), required=False)


class InvitedSerializer(serializers.Serializer):
    account = serializers.CharField(source="account.username")
    role = serializers.CharField()
    address = serializers.CharField(
        allow_null=True, help_text="Where a new colleague chooses a password within three days. It is shown only now."
    )


class StudyMemberSerializer(serializers.Serializer):
    account = serializers.CharField(source="user.username")
    role = serializers.CharField()


class OwnTemplateSerializer(serializers.Serializer):
    key = serializers.SerializerMethodField(help_text="What a new study names to be made of it.")
    title = serializers.CharField()
    has_texts = serializers.BooleanField()

    def get_key(self, template: OwnTemplate) -> str:
        return f"{OWN_PREFIX}{template.pk}"


class TemplateSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="What a new study names to be made of it.")
    title = serializers.CharField()
    source = serializers.CharField(allow_blank=True, help_text="The publication that it repeats or follows.")
    is_own = serializers.BooleanField(help_text="Kept from a study of this site.")


class RemovedSerializer(serializers.Serializer):
    removed = serializers.DictField(child=serializers.IntegerField(), help_text="Rows removed, by kind.")


class AuditEventSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    by = serializers.CharField(
        source="by.username", default=None, allow_null=True, help_text="Null: an annotator or the site itself."
    )
    verb = serializers.CharField()
    assignment = serializers.SerializerMethodField(help_text="Pseudonym of the assignment that it is about, or null.")
    data = serializers.JSONField()

    def get_assignment(self, event: AuditEvent) -> str | None:
        return assignment_pseudonym(event.assignment_code) if event.assignment_code else None


class TokenSerializer(serializers.Serializer):
    number = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    scope = serializers.CharField(help_text="read, draft (read, and write drafts) or write.")
    study = serializers.UUIDField(source="study.code", default=None, allow_null=True)
    may_make_tokens = serializers.BooleanField()
    made_by = serializers.IntegerField(
        source="parent_id", allow_null=True, help_text="Number of the token that made it."
    )
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    used_at = serializers.DateTimeField(allow_null=True)


class TokenMadeSerializer(TokenSerializer):
    token = serializers.CharField(help_text="Shown only now. heval keeps its hash.")


class NewTokenSerializer(StrictMixin, serializers.Serializer):
    name = NameField(max_length=100, help_text="The program that uses the token.")
    scope = ListedField(choices=ApiToken.Scope.choices, default=ApiToken.Scope.READ)
    study = CodeField(required=False, allow_null=True, help_text="Only this study. Default: all of yours.")
    expires_at = TimeField(required=False, allow_null=True)
    may_make_tokens = StrictBooleanField(required=False)

    def validate_expires_at(self, value):
        if value is not None and value <= timezone.now():
            raise serializers.ValidationError("This time is in the past. Send a later time.")
        return value
