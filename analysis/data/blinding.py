"""Hide outcomes while a study is collecting: answers by system are refused for every user."""

from collections.abc import Iterable

from django.core.exceptions import PermissionDenied

from studies.models import Study

NEVER_BLINDED_ORIGINS = frozenset({"test", "robot"})


def are_outcomes_hidden(study: Study, origins: Iterable[str]) -> bool:
    """Return whether answers of these origins, by system, are hidden now."""
    return study.is_blind and not set(origins) <= NEVER_BLINDED_ORIGINS


def check_outcomes_visible(study: Study, origins: Iterable[str]) -> None:
    """Raise PermissionDenied if answers by system are hidden."""
    if are_outcomes_hidden(study, origins):
        raise PermissionDenied(
            "The study is still collecting, so answers by system are hidden. Close or unblind it first, or read only "
            "test and robot answers."
        )
