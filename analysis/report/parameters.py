"""The parameters of a report, their defaults and their validation."""

from collections.abc import Mapping
from typing import Any

from analysis.data.frames import validate_origins
from annotators.counting import Use, select
from annotators.models import Assignment
from studies.models import Study

DEFAULT_PARAMETERS: dict[str, Any] = {"origins": ["live"], "level": 0.95, "resamples": 9999, "star_scheme": "10/5/1"}
STAR_SCHEMES = ("10/5/1", "5/1/0.1")


class BadParameters(ValueError):
    """A report parameter is unknown or invalid. The message names it."""


def default_origins(study: Study) -> list[str]:
    """Return the default origins: imported if the study has imported assignments and no live ones, else live."""
    assignments = Assignment.objects.filter(study=study)
    live, imported = (select(Use.ROWS, assignments, [origin]) for origin in ("live", "imported"))
    is_imported = imported.exists() and not live.exists()
    return ["imported"] if is_imported else list(DEFAULT_PARAMETERS["origins"])


def validate_parameters(parameters: Mapping[str, Any] | None, study: Study | None = None) -> dict[str, Any]:
    """Validate the parameters and fill in defaults, with the study's default origins. Raises BadParameters."""
    given = dict(parameters or {})
    if unknown := sorted(set(given) - set(DEFAULT_PARAMETERS)):
        raise BadParameters(f"{unknown[0]}: there is no such parameter. Use {', '.join(DEFAULT_PARAMETERS)}.")
    validated = DEFAULT_PARAMETERS | given
    if not isinstance(validated["origins"], list | tuple) or not all(
        isinstance(origin, str) for origin in validated["origins"]
    ):
        raise BadParameters('origins: must be a list of origins. Use, for example, ["live"].')
    try:
        validated["origins"] = validate_origins(validated["origins"])
    except ValueError as error:
        raise BadParameters(str(error)) from None
    if not validated["origins"]:
        raise BadParameters("origins: the list is empty. Name at least one origin.")
    level, resamples = validated["level"], validated["resamples"]
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level < 1:
        raise BadParameters(f"level: {level!r} is not accepted. Enter a number from 0.5 to below 1.")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 99 <= resamples <= 99_999:
        raise BadParameters(f"resamples: {resamples!r} is not accepted. Enter an integer from 99 to 99999.")
    if validated["star_scheme"] not in STAR_SCHEMES:
        raise BadParameters(
            f"star_scheme: {validated['star_scheme']!r} is not a star scheme. Use {' or '.join(STAR_SCHEMES)}."
        )
    if study is not None and "origins" not in given:
        validated["origins"] = default_origins(study)
    return validated
