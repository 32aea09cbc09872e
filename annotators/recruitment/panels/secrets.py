"""Tokens of panels, encrypted in the database.

Jobs and the verification of notifications read them.
This module is the only reader and writer of PanelSecret.
"""

from collections.abc import Collection, Mapping

from django.db import transaction

from annotators.models import PanelSecret, Recruitment
from annotators.models.crypto import Purpose, decrypt, encrypt
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, check_permission_or_404
from studies.models import audit
from studies.services.lifecycle import ActionRefused

from . import PanelService, RequestRefused

# The panel signs its notifications with it. It gives no access to the panel.
WEBHOOK_SECRET = "hook"  # noqa: S105 - the name of a secret


class NoService(ActionRefused):
    """This recruitment's channel cannot contact its panel, or lacks a required secret."""


def store_or_delete_secrets(recruitment: Recruitment, secrets: Mapping[str, str], *, by) -> None:
    """Store secrets by name; delete those given as an empty value.

    The audit log records who and which, not the values.
    """
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    with transaction.atomic():
        for name, secret in secrets.items():
            stored = PanelSecret.objects.filter(recruitment=recruitment, name=name)
            stored.delete()
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


def stored_secret_dates(recruitment: Recruitment) -> dict[str, object]:
    """Return the names and dates of the stored secrets. Pages may show nothing more."""
    return dict(PanelSecret.objects.filter(recruitment=recruitment).values_list("name", "written_at"))


def has_service_secret(recruitment: Recruitment) -> bool:
    """Return whether a secret is stored that allows heval to contact the panel."""
    return PanelSecret.objects.filter(recruitment=recruitment).exclude(name=WEBHOOK_SECRET).exists()


def decrypt_panel_secret(recruitment: Recruitment, name: str) -> str:
    """Return one secret; '' if it is not stored."""
    if not recruitment.pk:  # a form that is not saved yet
        return ""
    ciphertext = (
        PanelSecret.objects.filter(recruitment=recruitment, name=name).values_list("ciphertext", flat=True).first()
    )
    return decrypt(Purpose.CREDENTIAL, ciphertext) if ciphertext else ""


def get_panel_service(recruitment: Recruitment) -> PanelService:
    """Return the panel's service with the stored secrets. Raises NoService with a message for researchers."""
    channel = REGISTRY.get(recruitment.channel)
    encrypted = (
        PanelSecret.objects.filter(recruitment=recruitment)
        .exclude(name=WEBHOOK_SECRET)
        .values_list("name", "ciphertext")
    )
    secrets = {name: decrypt(Purpose.CREDENTIAL, ciphertext) for name, ciphertext in encrypted}
    try:
        service = channel.service(recruitment, secrets) if channel else None
    except RequestRefused as error:
        raise NoService(str(error)) from error
    if service is None:
        raise NoService(
            f"{recruitment} has no panel token, or its channel has no service. Store the token on the panel page."
        )
    return service


def available_operations(recruitment: Recruitment) -> Collection[str]:
    """Return the operations that this recruitment's panel supports; empty without a stored secret."""
    try:
        return get_panel_service(recruitment).operations
    except NoService:
        return ()
