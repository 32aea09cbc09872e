"""Outcomes are hidden while a study collects: answers by system are refused here, whoever asks for them."""

from collections.abc import Iterable

from django.core.exceptions import PermissionDenied

from studies.models import Study

NEVER_OUTCOMES = frozenset({"test", "robot"})


def hides(study: Study, origins: Iterable[str]) -> bool:
    """Whether answers of these origins, by system, are hidden now."""
    return study.is_blind and not set(origins) <= NEVER_OUTCOMES


def check_outcomes(study: Study, origins: Iterable[str]) -> None:
    """Refuse answers by system while the study is blind."""
    if hides(study, origins):
        raise PermissionDenied(
            "The study still collects: answers by system are hidden until it is closed or unblinded. "
            "Assignments and progress can be read, and answers of origin test or robot."
        )
