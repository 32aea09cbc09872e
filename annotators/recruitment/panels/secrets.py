"""Tokens of panels: enciphered in the database, readable by jobs and by what proves a panel's messages. The only reader and writer of
PanelSecret."""

from collections.abc import Collection, Mapping

from django.db import transaction

from annotators.models import PanelSecret, Recruitment
from annotators.models.crypto import Purpose, decrypt, encrypt
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, check_permission
from studies.models import audit
from studies.services.lifecycle import ActionRefused

from . import PanelService, RequestRefused

# With it the panel signs its messages. It opens nothing at the panel.
WEBHOOK_SECRET = "hook"  # noqa: S105 - the name of a secret


class NoService(ActionRefused):
    """This recruitment's channel cannot speak to its panel, or lacks a secret that it needs."""


def store_secrets(recruitment: Recruitment, secrets: Mapping[str, str], *, by) -> None:
    """Write secrets by name; an empty one is forgotten. Who did so and which, not what, goes into the record."""
    check_permission(by, Action.PANEL, recruitment.study)
    with transaction.atomic():
        for name, secret in secrets.items():
            mine = PanelSecret.objects.filter(recruitment=recruitment, name=name)
            mine.delete()
            if secret:
                PanelSecret.objects.create(
                    recruitment=recruitment, name=name, ciphertext=encrypt(Purpose.CREDENTIAL, secret)
                )
            audit.record(
                "keep secret" if secret else "forget secret",
                study=recruitment.study,
                by=by,
                recruitment=recruitment.key,
                name=name,
            )


def secret_dates(recruitment: Recruitment) -> dict[str, object]:
    """Which secrets are there, and since when: all that a page may say of them."""
    return dict(PanelSecret.objects.filter(recruitment=recruitment).values_list("name", "written_at"))


def has_token(recruitment: Recruitment) -> bool:
    """Whether something is kept by which the panel may be spoken to."""
    return PanelSecret.objects.filter(recruitment=recruitment).exclude(name=WEBHOOK_SECRET).exists()


def panel_secret(recruitment: Recruitment, name: str) -> str:
    """One secret; '' where there is none."""
    if recruitment.pk is None:  # a form that was not saved yet
        return ""
    kept = PanelSecret.objects.filter(recruitment=recruitment, name=name).values_list("ciphertext", flat=True).first()
    return decrypt(Purpose.CREDENTIAL, kept) if kept else ""


def service_of(recruitment: Recruitment) -> PanelService:
    """The panel's service in the name of whose secrets are kept. Raises NoService, in words for a researcher."""
    channel = REGISTRY.get(recruitment.channel)
    kept = (
        PanelSecret.objects.filter(recruitment=recruitment)
        .exclude(name=WEBHOOK_SECRET)
        .values_list("name", "ciphertext")
    )
    secrets = {name: decrypt(Purpose.CREDENTIAL, ciphertext) for name, ciphertext in kept}
    try:
        service = channel.service(recruitment, secrets) if channel else None
    except RequestRefused as words:
        raise NoService(str(words)) from words
    if service is None:
        raise NoService(f"{recruitment} has no token of its panel, or its channel has no service.")
    return service


def available_operations(recruitment: Recruitment) -> Collection[str]:
    """What this recruitment's panel can be told to do; nothing where no secret is kept."""
    try:
        return service_of(recruitment).operations
    except NoService:
        return ()
