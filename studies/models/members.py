"""Members: the researchers of a study, each with a role."""

from django.conf import settings
from django.db import models
from django.db.models import UniqueConstraint

from .study import Study


class StudyMember(models.Model):
    """A researcher's role in a study."""

    class Role(models.TextChoices):
        OWNER = "owner", "owner: can do everything and manage members"
        EDITOR = "editor", "editor: can define, launch and analyse"
        VIEWER = "viewer", "viewer: can only read"
        CODER = "coder", "coder: can only code explanations, blind"

    study = models.ForeignKey(Study, models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        constraints = [UniqueConstraint(fields=["study", "user"], name="member_once_per_study")]

    def __str__(self):
        return f"{self.user} ({self.role})"
