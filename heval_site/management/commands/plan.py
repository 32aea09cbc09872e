"""``heval plan``: say what a study of this size can find and what it costs, for people and, by the exit code, for programs."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from analysis.planning.advice import percent, points_text
from analysis.planning.checklist import HELP, TEXTS, WHOLE, changed_inputs, starting_inputs
from analysis.planning.inputs import PEOPLE, PROMPTS, PROMPTS_EACH, InvalidPlanInputs, PlanInputs, inputs_from_draft
from analysis.planning.pilots import PREFIX, estimate_study, find_pilot_study, pilot_of
from analysis.planning.results import quick_numbers
from analysis.planning.run import compute_plan, simulate_plan
from analysis.stats.planning.inputs import DEFAULT_HEADLINE, StudySize, Variation
from heval_site.management.find_study import find_study
from studies.imports.bundle import MAX_BUNDLE_BYTES, BundleRefused
from studies.imports.bundle_files import create_draft_from_bundle
from studies.models import Study, new_seed
from studies.services.drafts import refuse_if_launched
from studies.services.lifecycle import ActionRefused

REACHED, NOT_REACHED, FAILED = 0, 1, 2
FLAGS = {name: name.replace("_", "-") for name in HELP} | {"prompts_each": "each"}


class Command(BaseCommand):
    help = (
        "Print what a study of this size can find, and what it costs: approximate numbers at once, then those of simulated studies. "
        "Exit with 0 if the study has the wanted power, 1 if it has not, and 2 if an input is wrong."
    )
    requires_system_checks = []

    def add_arguments(self, parser):
        parser.add_argument("bundle", nargs="?", type=Path, help="A study's bundle. Nothing of it is stored.")
        parser.add_argument(
            "--study",
            help="A draft of this site: its code (a unique beginning is enough) or title. It stores the plan.",
        )
        parser.add_argument("--quick", action="store_true", help="Only the approximate numbers.")
        parser.add_argument("--seed", type=int, help="Seed of the simulations (default: a new one).")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")
        values = parser.add_argument_group("values", "What differs from the study, or from a study of two choices.")
        for name, text in HELP.items():
            kind = str if name in TEXTS else int if name in WHOLE else float
            values.add_argument(f"--{FLAGS[name]}", dest=f"value_{name}", type=kind, metavar="X", help=text)

    def handle(self, *, bundle, study, quick, seed, verbosity, **options):
        if bundle and study:
            raise CommandError("A bundle and --study are two studies. Give one of them.", returncode=FAILED)
        if study and seed is not None:
            raise CommandError("A stored plan has a seed of its own. Leave out --seed or --study.", returncode=FAILED)
        changes = {name: value for name in HELP if (value := options[f"value_{name}"]) is not None}
        found, start, currency = self._start(bundle, study, changes)
        try:
            prior = changes.get("prior", start.prior)
            if prior.startswith(PREFIX):
                estimate_study(find_pilot_study(prior.removeprefix(PREFIX), None), None)
            inputs = changed_inputs(start, changes, None)
            pilot = pilot_of(inputs, None)
        except ActionRefused as refused:
            raise CommandError(f"--prior: {refused}", returncode=FAILED) from None
        except InvalidPlanInputs as refused:
            lines = [f"--{FLAGS.get(name, name)}: {_with_flags(text)}" for name, text in refused.errors.items()]
            raise CommandError("\n".join(lines), returncode=FAILED) from None
        draws = pilot.draws if pilot else ()
        numbers = quick_numbers(inputs, currency, draws, pilot.own if pilot else ())
        if not options["json"]:
            self._print_quick(numbers)
        result = None if quick else self._simulate(found, inputs, draws, seed)
        power = result["plan"]["planned"]["power"] if result else numbers["power"]
        has_power = power >= inputs.target.wanted
        if options["json"]:
            report = {"approximate": numbers, "simulated": result, "has_wanted_power": has_power}
            self.stdout.write(json.dumps(report, indent=1, ensure_ascii=False))
        elif result:
            self._print_simulated(result["plan"], inputs)
        if not has_power:
            self.stdout.flush()
            raise SystemExit(NOT_REACHED)

    def _start(
        self, bundle: Path | None, name: str | None, changes: dict[str, Any]
    ) -> tuple[Study | None, PlanInputs, str]:
        """Return the stored study, the inputs before the changes, and the currency."""
        if name:
            try:
                study = find_study(name)
            except CommandError as error:
                raise CommandError(str(error), returncode=FAILED) from None
            return study, starting_inputs(study), study.currency
        if bundle:
            return None, *_read_bundle(bundle)
        if "prompts" in changes:  # with few prompts, each person answers about all of them
            changes.setdefault("prompts_each", max(1, min(PROMPTS_EACH, changes["prompts"])))
        size = StudySize(protocol=DEFAULT_HEADLINE, people=PEOPLE, prompts=PROMPTS, prompts_each=PROMPTS_EACH)
        return None, PlanInputs(size), Study._meta.get_field("currency").default

    def _simulate(
        self, study: Study | None, inputs: PlanInputs, draws: tuple[Variation, ...], seed: int | None
    ) -> dict[str, Any]:
        if study is None:
            return simulate_plan(inputs, new_seed() if seed is None else seed, draws=draws)
        try:
            refuse_if_launched(study)
        except ActionRefused as refused:
            raise CommandError(f"{refused} --quick shows approximate numbers.", returncode=FAILED) from None
        return compute_plan(study, None, inputs, draws=draws).result

    def _print_quick(self, numbers: dict[str, Any]) -> None:
        for sentence in (*numbers["sentences"], *numbers["advice"]):
            self.stdout.write(sentence)
        self.stdout.flush()

    def _print_simulated(self, plan: dict[str, Any], inputs: PlanInputs) -> None:
        planned, wrong, protocol = plan["planned"], plan["false_decision"], inputs.size.protocol

        def shown(value: float, error: float) -> str:
            return f"{100 * value:.1f} % (± {100 * error:.1f})"

        lines = [
            f"{planned['runs']:,} simulated studies (± is the Monte-Carlo error; seed {plan['settings']['seed']}):",
            f"  power                  {shown(planned['power'], planned['power_error'])}",
        ]
        if planned["half_width"] is not None:
            lines.append(f"  expected interval      ± {points_text(planned['half_width'], protocol)}")
        if plan["detectable"] is not None:
            found = shown(plan["detectable"], plan["detectable_error"])
            lines.append(f"  smallest difference    {found}, with {percent(inputs.target.wanted)} power")
        lines.append(f"  wrong decisions        {shown(wrong['power'], wrong['power_error'])}")
        self.stdout.write("\n".join(lines))


def _with_flags(text: str) -> str:
    """Name other values in a refusal by their options."""
    return text.replace("prompts_each", "--each")


def _read_bundle(path: Path) -> tuple[PlanInputs, str]:
    """Return what a bundle says of its size, and its currency. The draft that is made of it is not kept."""
    if not path.is_file():
        raise CommandError(f"There is no file {path}. Correct the path.", returncode=FAILED)
    if path.stat().st_size > MAX_BUNDLE_BYTES:
        raise CommandError(
            f"The file is larger than {MAX_BUNDLE_BYTES:,} bytes. Remove outputs from it.", returncode=FAILED
        )
    try:
        with transaction.atomic():
            study = create_draft_from_bundle(path.read_bytes(), None)
            inputs, currency = inputs_from_draft(study), study.currency
            transaction.set_rollback(True)
    except BundleRefused as refused:
        raise CommandError("\n".join(refused.problems), returncode=FAILED) from None
    return inputs, currency
