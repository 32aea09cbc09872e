"""The parameters of a report, and what they are when nobody says."""

from collections.abc import Mapping
from typing import Any

from analysis.data.frames import checked_origins
from annotators.models import Assignment
from studies.models import Study

DEFAULT_PARAMETERS: dict[str, Any] = {"origins": ["live"], "level": 0.95, "resamples": 9999, "star_scheme": "10/5/1"}
STAR_SCHEMES = ("10/5/1", "5/1/0.1")


class BadParameters(ValueError):
    """A parameter of the report is none that it knows; the message names it."""


def default_origins(study: Study) -> list[str]:
    """Whose answers a report is about when nobody says: the people of the study; where all were imported, those."""
    found = Assignment.objects.filter(study=study, withdrawn_at=None)
    is_imported = found.filter(origin="imported").exists() and not found.filter(origin="live").exists()
    return ["imported"] if is_imported else list(DEFAULT_PARAMETERS["origins"])


def checked_parameters(parameters: Mapping[str, Any] | None, study: Study | None = None) -> dict[str, Any]:
    """The parameters with every default filled in, the study's own where it has one. Raises BadParameters, naming what is wrong."""
    given = dict(parameters or {})
    if unknown := sorted(set(given) - set(DEFAULT_PARAMETERS)):
        raise BadParameters(f"{unknown[0]}: a report has no such parameter; it has {', '.join(DEFAULT_PARAMETERS)}.")
    made = DEFAULT_PARAMETERS | given
    if not isinstance(made["origins"], list | tuple) or not all(isinstance(one, str) for one in made["origins"]):
        raise BadParameters("origins: must be a list of their names.")
    try:
        made["origins"] = checked_origins(made["origins"])
    except ValueError as error:
        raise BadParameters(str(error)) from None
    if not made["origins"]:
        raise BadParameters("origins: name at least one.")
    level, resamples = made["level"], made["resamples"]
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level < 1:
        raise BadParameters(f"level: {level!r} is no confidence level from 0.5 to below 1.")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 99 <= resamples <= 99_999:
        raise BadParameters(f"resamples: {resamples!r} is no whole number from 99 to 99999.")
    if made["star_scheme"] not in STAR_SCHEMES:
        raise BadParameters(f"star_scheme: {made['star_scheme']!r} is none of {', '.join(STAR_SCHEMES)}.")
    if study is not None and "origins" not in given:
        made["origins"] = default_origins(study)
    return made
