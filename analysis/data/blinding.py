"""Outcomes are hidden while a study collects: answers by system are refused here, whoever asks for them."""

from collections.abc import Iterable

from django.core.exceptions import PermissionDenied

from studies.models import Study

NEVER_BLINDED_ORIGINS = frozenset({"test", "robot"})


def are_outcomes_hidden(study: Study, origins: Iterable[str]) -> bool:
    """Whether answers of these origins, by system, are hidden now."""
    return study.is_blind and not set(origins) <= NEVER_BLINDED_ORIGINS


def check_outcomes_visible(study: Study, origins: Iterable[str]) -> None:
    """Refuse answers by system while the study is blind."""
    if are_outcomes_hidden(study, origins):
        raise PermissionDenied(
            "The study still collects: answers by system are hidden until it is closed or unblinded. "
            "Assignments and progress can be read, and answers of origin test or robot."
        )
