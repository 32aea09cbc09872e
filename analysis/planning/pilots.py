"""Where a plan's variation comes from: a public prior, a study on the same site, or a file of answers."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from analysis.stats.planning.inputs import Variation
from analysis.stats.planning.priors import prior_of
from studies.access import Action, filter_allowed
from studies.models import PilotFile, Study
from studies.services.drafts import locked_draft

from .answer_files import read_answers_file
from .inputs import InvalidPlanInputs, PlanInputs
from .pilot_studies import PREFIX as PILOT
from .pilot_studies import estimate_as_json, find_pilot_study, stored_pilot

FILE = "file:"
NOT_READ = "The answers of this study are not read yet. Choose it as a pilot on the page Plan, or send its code to plans/pilots/."
# Files and studies that the page lists.
MOST_LISTED = 20


class ResolvedPrior(NamedTuple):
    """The variation, draws of what it may be (none for a public prior), where it comes from, and what a pilot says."""

    variation: Variation
    draws: tuple[Variation, ...]
    label: str
    sentence: str = ""


def store_answers_file(
    study: Study, by, filename: str, data: bytes, *, protocol: str = "", points: int = 5
) -> PilotFile:
    """Store what a file of answers says, for the plans of this draft, or return what is stored already. The answers are not kept.

    Raise AnswersRefused with every problem of the file, or ActionRefused if the study is launched.
    """
    read = read_answers_file(filename, data, protocol=protocol, points=points)
    stored = study.pilot_files.filter(sha256=read.sha256).first()
    if stored is None:
        name = filename[:200]
        estimate = read.estimate(f"file “{name}”, {len(read.values)} answers")
    with locked_draft(study.pk, by) as draft:
        if stored is not None:
            return stored
        return PilotFile.objects.get_or_create(
            study=draft, sha256=read.sha256, defaults={"name": name, "estimate": estimate_as_json(estimate), "by": by}
        )[0]


def resolve_prior(key: str, user) -> ResolvedPrior:
    """Return the variation that a prior names: a public one, ``pilot:<code of a study>`` or ``file:<sha256>``.

    Raise InvalidPlanInputs for the field ``prior`` if there is no such prior or the user may not use it.
    """
    if key.startswith(PILOT):
        pilot = stored_pilot(find_pilot_study(key.removeprefix(PILOT), user))
        if pilot is None:
            raise InvalidPlanInputs({"prior": NOT_READ})
        return _resolved(pilot.estimate)
    if key.startswith(FILE):
        files = PilotFile.objects.all() if user is None else filter_allowed(user, PilotFile.objects.all(), Action.VIEW)
        stored = files.filter(sha256=key.removeprefix(FILE)).first()
        if stored is None:
            raise InvalidPlanInputs({"prior": "No such file is stored. Upload the file of answers again."})
        return _resolved(stored.estimate)
    try:
        prior = prior_of(key)
    except ValueError as refused:
        raise InvalidPlanInputs({"prior": str(refused).removeprefix("prior: ")}) from None
    return ResolvedPrior(prior.variation, (), prior.label)


def pilot_of(inputs: PlanInputs, user) -> ResolvedPrior | None:
    """Return the pilot of the inputs, or None if their variation is of another kind.

    Raise InvalidPlanInputs if the pilot cannot be read, or says something else by now.
    """
    if not inputs.prior.startswith((PILOT, FILE)):
        return None
    resolved = resolve_prior(inputs.prior, user)
    if any(
        getattr(resolved.variation, name) != getattr(inputs.variation, name) for name in ("sd_people", "sd_prompts")
    ):
        raise InvalidPlanInputs({"prior": "The answers of the pilot have changed. Choose the pilot again."})
    return resolved


def draws_of(inputs: PlanInputs, user) -> tuple[Variation, ...]:
    """Return what the variation of the inputs may be, if it comes from a pilot. Without a pilot there are no draws."""
    pilot = pilot_of(inputs, user)
    return () if pilot is None else pilot.draws


def pilots_to_choose(study: Study, user, chosen: str) -> dict[str, Variation | None]:
    """Return the pilots that a plan of this study may name: its files, and the chosen study if the user may read it."""
    found: dict[str, Variation | None] = {
        f"{FILE}{one.sha256}": estimate_from_json(one.estimate)[0] for one in study.pilot_files.all()[:MOST_LISTED]
    }
    if chosen.startswith(PILOT):
        with suppress(InvalidPlanInputs):
            found[chosen] = resolve_prior(chosen, user).variation
    return found


def pilot_sentence(estimate: Mapping[str, Any]) -> str:
    """Return what an estimate, as JSON, says: the variation with the range of its draws, and the difference."""
    ranges = []
    for place, name in enumerate(("people", "prompts")):
        drawn = sorted(draw[place] for draw in estimate["draws"])
        last = len(drawn) - 1
        low, high = drawn[round(0.05 * last)], drawn[round(0.95 * last)]
        ranges.append(f"{name} {estimate['variation'][f'sd_{name}']:.2f} (.9 range {low:.2f} to {high:.2f})")
    low, high = estimate["difference_low"], estimate["difference_high"]
    interval = "" if low is None else f" (.95 interval {100 * low:.0f} to {100 * high:.0f} %)"
    return (
        f"Standard deviations: {', '.join(ranges)}. It observed {100 * estimate['difference']:.0f} %{interval}. "
        "The smallest difference that matters stays your decision."
    )


def _resolved(stored: Mapping[str, Any]) -> ResolvedPrior:
    variation, draws = estimate_from_json(stored)
    return ResolvedPrior(variation, draws, variation.source, pilot_sentence(stored))


def estimate_from_json(stored: Mapping[str, Any]) -> tuple[Variation, tuple[Variation, ...]]:
    """Return the variation and its draws."""
    variation = Variation(**stored["variation"])
    return variation, tuple(
        Variation(sd_people=people, sd_prompts=prompts, source=variation.source) for people, prompts in stored["draws"]
    )
