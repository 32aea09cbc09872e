"""``simulate <study> --robots 100``: let robots with known preferences answer a launched study."""

import math
import random
import time
import uuid

from django.core.management.base import BaseCommand, CommandError

from analysis.report.stopping import robots_have_decided
from annotators.participation.simulate import CrowdSettings, default_system_strengths, record_simulated_answers
from heval_site.management.find_study import find_study
from heval_site.management.site_command import WRONG_USE

# Settings that are not shares, with the smallest and the largest value.
NUMBERS = {"batches": (1, 1000), "activity": (0, 3)}


class Command(BaseCommand):
    help = (
        "Let robots with known preferences answer a launched study like annotators. They take real places. If the study has a "
        "stopping rule, no more robots are sent after it would have decided."
    )

    def add_arguments(self, parser):
        parser.add_argument("study", help="The study's code (a unique beginning is enough) or title.")
        parser.add_argument("--robots", type=int, default=100, help="number of robots (default 100)")
        parser.add_argument(
            "--prefer",
            action="append",
            default=[],
            metavar="SYSTEM=LOGIT",
            help="strength of a system in log-odds; repeat for each system (default: half a point apart, by name)",
        )
        parser.add_argument("--seed", type=int, default=None)
        for name, text in (
            ("acquiescent", "share of robots that favour the system named first"),
            ("screened-out", "share of robots that fail screening"),
            ("abandoning", "share of robots that leave before the last page"),
            ("careless", "share of robots that answer at random"),
            ("right", "how often careless robots answer a test question right, from 0 to 1 (default: at random)"),
            ("batches", "median number of batches of a robot, as far as the study has so many for it (default 1)"),
            ("activity", "standard deviation of the logarithm of this number (default 0: all robots alike)"),
        ):
            parser.add_argument(f"--{name}", type=float, default=None, help=text)

    def handle(self, *args, **options):
        study = find_study(options["study"])
        if options["robots"] < 1:
            raise CommandError(
                f"--robots: {options['robots']} robots cannot answer. Enter at least 1.", returncode=WRONG_USE
            )
        preferences = (
            self._parse_preferences(options["prefer"]) if options["prefer"] else default_system_strengths(study)
        )
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
        self.stdout.write(
            f"{ended.submitted} submitted, {ended.screened_out} screened out, {ended.failed_checks} failed attention checks, {ended.abandoned} left, "
            f"{ended.turned_away} found no place ({time.monotonic() - begun:.1f} s)."
        )
        if ended.is_decided:
            self.stdout.write(
                f"The declared stopping rule would have decided after {ended.submitted} robots, so no more were sent. The study goes on."
            )
        self.stdout.write("Preferences: " + ", ".join(f"{name} {value:g}" for name, value in preferences.items()))

    def _parse_preferences(self, given):
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
