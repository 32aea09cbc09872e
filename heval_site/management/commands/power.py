"""``heval power TEST``: the exact power of a classical test, or the number of people that it needs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from heval_site.management.exit_codes import WRONG_USE


@dataclass(frozen=True, slots=True)
class Answers:
    """Three questions about one test, each asked with the options of the command. ``detectable`` is None for equivalence, which has no such difference."""

    power: Callable[[dict[str, Any]], float]
    n: Callable[[dict[str, Any]], int]
    detectable: Callable[[dict[str, Any]], float] | None
    detects: str = "difference"


def _answers(test: str) -> Answers:
    from analysis.stats import power_of_means, power_of_shares

    def level(o: dict[str, Any]) -> dict[str, Any]:
        return {"significance": o["significance"] / o["tests"]}

    def wanted(o: dict[str, Any]) -> dict[str, Any]:
        return {"power": o["power"], "significance": o["significance"], "tests": o["tests"]}

    def sds(o: dict[str, Any]) -> dict[str, Any]:
        return {"sd_x": o["sd"], "sd_y": o["sd_y"]}

    return {
        "mean": Answers(
            lambda o: power_of_means.t_test_power(o["difference"] / o["sd"], o["n"], **level(o)),
            lambda o: power_of_means.n_for_t_test(o["difference"] / o["sd"], **wanted(o)),
            lambda o: power_of_means.t_test_detectable_difference(o["n"], sd=o["sd"], **wanted(o)),
        ),
        "two_means": Answers(
            lambda o: power_of_means.two_sample_t_test_power(o["difference"], o["n"], o["n"], **sds(o), **level(o)),
            lambda o: power_of_means.n_for_two_sample_t_test(o["difference"], **sds(o), **wanted(o))[0],
            lambda o: power_of_means.two_sample_detectable_difference(o["n"], o["n"], **sds(o), **wanted(o)),
        ),
        "groups": Answers(
            lambda o: power_of_means.anova_power(o["effect"], [o["n"]] * o["groups"], **level(o)),
            lambda o: power_of_means.n_per_group_for_anova(o["effect"], o["groups"], **wanted(o)),
            lambda o: power_of_means.anova_detectable_effect([o["n"]] * o["groups"], **wanted(o)),
            "Cohen's f",
        ),
        "share": Answers(
            lambda o: power_of_shares.proportion_power(o["share"], o["n"], null=o["null"], **level(o)),
            lambda o: power_of_shares.n_for_proportion(o["share"], null=o["null"], **wanted(o)),
            lambda o: power_of_shares.proportion_detectable_increase(o["n"], null=o["null"], **wanted(o)),
        ),
        "two_shares": Answers(
            lambda o: power_of_shares.two_proportions_power(o["share"], o["other"], o["n"], o["n"], **level(o)),
            lambda o: power_of_shares.n_for_two_proportions(o["share"], o["other"], **wanted(o))[0],
            lambda o: power_of_shares.two_proportions_detectable_increase(o["other"], o["n"], o["n"], **wanted(o)),
        ),
        "paired_shares": Answers(
            lambda o: power_of_shares.paired_proportions_power(o["only_x"], o["only_y"], o["n"], **level(o)),
            lambda o: power_of_shares.n_for_paired_proportions(o["only_x"], o["only_y"], **wanted(o)),
            lambda o: power_of_shares.paired_proportions_detectable_difference(
                o["only_x"] + o["only_y"], o["n"], **wanted(o)
            ),
        ),
        "equivalence": Answers(
            lambda o: power_of_means.equivalence_power(
                o["n"], sd=o["sd"], margin=o["margin"], difference=o["difference"], **level(o)
            ),
            lambda o: power_of_means.n_for_equivalence(
                sd=o["sd"], margin=o["margin"], difference=o["difference"], power=o["power"], **level(o)
            ),
            None,
        ),
    }[test]


# Test > its help, its unit, and its options with their help and default; without a default an option is needed.
TESTS: dict[str, tuple[str, str, dict[str, tuple[str, float | None]]]] = {
    "mean": (
        "one-sample or paired t test",
        "people",
        {
            "difference": ("Difference from the null value.", None),
            "sd": ("Standard deviation of people's means.", None),
        },
    ),
    "two_means": (
        "Welch's t test of two groups of people, such as two training conditions",
        "people in each group",
        {
            "difference": ("Difference of the means.", None),
            "sd": ("Standard deviation of the first group.", None),
            "sd_y": ("Standard deviation of the second group (default: the same).", 0.0),
        },
    ),
    "groups": (
        "one-way analysis of variance",
        "people in each group",
        {"effect": ("Cohen's f.", None), "groups": ("Number of groups.", None)},
    ),
    "share": (
        "exact binomial test of a share, one answer of each person",
        "people",
        {"share": ("The true share.", None), "null": ("The share without a difference (default: .5).", 0.5)},
    ),
    "two_shares": (
        "Fisher's exact test of two groups of people",
        "people in each group",
        {"share": ("The share of the first group.", None), "other": ("The share of the second group.", None)},
    ),
    "paired_shares": (
        "McNemar's exact test",
        "people",
        {
            "only_x": ("Share of people with only the first property.", None),
            "only_y": ("Share with only the second.", None),
        },
    ),
    "equivalence": (
        "two one-sided t tests",
        "people",
        {
            "sd": ("Standard deviation of people's means.", None),
            "margin": ("Largest difference that does not matter.", None),
            "difference": ("The true difference (default: 0).", 0.0),
        },
    ),
}


# Names that the statistics give to options.
OPTIONS_OF = {"p": "share", "p_x": "share", "p_y": "other", "n_x": "n", "n_y": "n", "sizes": "n", "sd_x": "sd"}


class Command(BaseCommand):
    help = (
        "Print the exact power of a classical test for --n, or without it the least number of people with the wanted power. These tests "
        "have one value for each person. `heval study plan` plans studies in which people judge many prompts."
    )
    requires_system_checks = []

    def add_arguments(self, parser):
        subparsers = parser.add_subparsers(dest="test", required=True, metavar="TEST")
        for name, (text, unit, options) in TESTS.items():
            one = subparsers.add_parser(name, help=text, description=f"Exact power of the {text}.")
            for option, (option_help, default) in options.items():
                kind = int if option == "groups" else float
                one.add_argument(
                    f"--{option.replace('_', '-')}",
                    type=kind,
                    required=default is None,
                    default=default,
                    help=option_help,
                )
            one.add_argument("--n", type=int, help=f"Number of {unit} whose answers count.")
            one.add_argument("--power", type=float, default=0.8, help="Wanted power (default: .8).")
            one.add_argument("--significance", type=float, default=0.05, help="Two-sided level (default: .05).")
            one.add_argument("--tests", type=int, default=1, help="Comparisons of the family; divides the level.")
            one.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *, test, **options):
        asked = {**options, "sd_y": options.get("sd_y") or None}
        answers, unit = _answers(test), TESTS[test][1]
        try:
            if not asked.get("sd", 1) > 0:
                raise ValueError(f"sd: {asked['sd']:g} is not a number above 0. Give how much people's means vary.")
            if asked["tests"] < 1:
                raise ValueError(f"tests: {asked['tests']} is less than 1. Give how many comparisons you make.")
            n = asked["n"] if asked["n"] is not None else answers.n(asked)
            asked["n"] = n
            power = answers.power(asked)
            detectable = None if answers.detectable is None else answers.detectable(asked)
        except ValueError as error:
            name, colon, text = str(error).partition(": ")
            raise CommandError(
                f"--{OPTIONS_OF.get(name, name).replace('_', '-')}{colon}{text}", returncode=WRONG_USE
            ) from None
        if options["json"]:
            self.stdout.write(
                json.dumps({"test": test, "n": n, "unit": unit, "power": power, "detectable": detectable})
            )
            return
        self.stdout.write(f"{n} {unit}: power {power:.3f}.")
        if detectable is not None:
            self.stdout.write(f"Smallest {answers.detects} found with power {asked['power']:g}: {detectable:.4g}.")
