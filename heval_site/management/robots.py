"""``heval study simulate``: let robots with known preferences answer a launched study. They take real places."""

import math
import random
import time
import uuid
from dataclasses import asdict
from typing import Any

from django.core.management import CommandError

from analysis.report.stopping import robots_have_decided
from annotators.participation.simulate import CrowdSettings, default_system_strengths, record_simulated_answers
from heval_site.management.exit_codes import WRONG_USE
from studies.models import Study

# Settings that are not shares, with the smallest and the largest value.
NUMBERS = {"batches": (1, 1000), "activity": (0, 3)}


def simulate(study: Study, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what came of the robots, as counts and as lines."""
    if options["robots"] < 1:
        raise CommandError(
            f"--robots: {options['robots']} robots cannot answer. Enter at least 1.", returncode=WRONG_USE
        )
    preferences = _parse_preferences(options["prefer"]) if options["prefer"] else default_system_strengths(study)
    given = {
        name: options[name]
        for name in ("acquiescent", "screened_out", "abandoning", "careless", "right", *NUMBERS)
        if options[name] is not None
    }
    for name, value in given.items():
        low, high = NUMBERS.get(name, (0, 1))
        if not low <= value <= high:
            raise CommandError(
                f"--{name.replace('_', '-')}: {value:g} is not possible. Enter a number from {low} to {high}.",
                returncode=WRONG_USE,
            )
    if "right" in given and not given.get("careless"):
        raise CommandError(
            "--right: it is about careless robots. Add --careless SHARE, or remove it.", returncode=WRONG_USE
        )
    seed = options["seed"] if options["seed"] is not None else study.seed
    begun = time.monotonic()
    # Another run with the same seed must simulate other people; otherwise heval refuses them as people who took
    # part already.
    name = f"robot-{uuid.uuid4().hex[:8]}"
    try:
        ended = record_simulated_answers(
            study,
            options["robots"],
            preferences,
            random.Random(seed),
            crowd=CrowdSettings(**given),
            name_prefix=name,
            has_decided=lambda: robots_have_decided(study),
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    lines = [
        f"{ended.submitted} submitted, {ended.screened_out} screened out, {ended.failed_checks} failed attention checks, {ended.abandoned} left, "
        f"{ended.turned_away} found no place ({time.monotonic() - begun:.1f} s)."
    ]
    if ended.is_decided:
        lines.append(
            f"The declared stopping rule would have decided after {ended.submitted} robots, so no more were sent. The study goes on."
        )
    lines.append("Preferences: " + ", ".join(f"{name} {value:g}" for name, value in preferences.items()))
    return {**asdict(ended), "preferences": preferences}, lines


def _parse_preferences(given: list[str]) -> dict[str, float]:
    preferences = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        try:
            preferences[name] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name or not math.isfinite(preferences[name]):
            raise CommandError(
                f"--prefer: {text!r} is not a preference. Write SYSTEM=NUMBER, for example alpha=0.5.",
                returncode=WRONG_USE,
            )
    return preferences
