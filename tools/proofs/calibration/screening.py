"""How well test questions find people who answer at random: whole studies, answered by robots on the annotators' pages.

A study with test questions is drafted and launched, robots take part in it several times, and the rules are applied to their
answers. ``python -m tools.proofs.calibration.screening --studies N`` prints the table and stores it in tests/golden/screening.json.
Then ``python -m tools.proofs.calibration --page-only`` writes the page again.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests import ROOT

if TYPE_CHECKING:
    from studies.models import Study

RECORD = ROOT / "tests" / "golden" / "screening.json"
PEOPLE, PROMPTS, ITEMS = 88, 300, 2
# A batch has one positive and one negative test question.
SHARE = 0.5
# Batches of one person: lognormal, with the median and the spread of the logarithm.
MEDIAN_BATCHES, SPREAD, MAX_BATCHES = 6, 0.9, 16
NOISY = (0.05, 0.2)
BUCKETS = {"1-4": range(1, 5), "5-14": range(5, 15), "15+": range(15, 10_000)}
SIMPLE = "failed_tests"
DEFAULT = "default"
# Table 1 of the paper: precision and recall in per cent by bucket.
PUBLISHED = {
    "class_fixed2": ((100, 24), (100, 91), (100, 87)),
    "class_learned2": ((100, 15), (100, 77), (100, 100)),
    "rate_jeffreys": ((68, 85), (93, 93), (100, 98)),
    "rate_uniform": ((56, 86), (93, 100), (100, 100)),
    "rate_fixed1": ((100, 32), (100, 94), (98, 100)),
    "rate_learned1": ((100, 14), (100, 100), (96, 100)),
    "rate_fixed2": ((86, 33), (100, 100), (100, 97)),
    "rate_learned2": ((100, 12), (100, 92), (100, 100)),
}
NAMES = (*PUBLISHED, DEFAULT, SIMPLE)


@dataclass(frozen=True, slots=True)
class Person:
    """Whether a robot answers at random, how many of its answers to test questions count, and what flags it."""

    is_noisy: bool
    n_counted: int
    flagged_by: frozenset[str]


def numbers_of_batches(rng: random.Random, n: int) -> list[int]:
    return sorted(
        (min(MAX_BATCHES, max(1, round(MEDIAN_BATCHES * rng.lognormvariate(0, SPREAD)))) for _ in range(n)),
        reverse=True,
    )


def launched_study(people: int, n_batches: int) -> "Study":
    """Return a launched study of ratings with test questions and enough places."""
    from studies.models import Output, Study, System
    from studies.services.known_answers import KnownAnswerRequest, make_test_questions_and_delete_test_runs
    from tests import builders

    researcher = builders.user()
    study = builders.draft_study(systems=("alpha", "human"), prompts=PROMPTS, owner=researcher)
    for number, output in enumerate(Output.objects.filter(system__study=study).order_by("pk")):
        words = " ".join(f"{output.system.name}{number}word{place}" for place in range(20 + number % 7))
        Output.objects.filter(pk=output.pk).update(text=words)
    study.arms.get().systems.set(System.objects.filter(study=study, name="alpha"))
    section = builders.add_rating(study, position=1, m=ITEMS, positive_share=SHARE, negative_share=SHARE)
    study.contrasts.all().delete()
    request = KnownAnswerRequest(
        section.questions.first(), {"positive": 150, "negative": 150}, study.systems.get(name="human")
    )
    make_test_questions_and_delete_test_runs(section, request, by=researcher)
    Study.objects.filter(pk=study.pk).update(target_n=n_batches + people, batches_per_annotator=MAX_BATCHES)
    study.refresh_from_db()
    return builders.launched(study, researcher)


def simulate_study(seed: int, people: int = PEOPLE) -> list[Person]:
    """Simulate one study. Return its people with at least one counted answer to a test question."""
    from analysis.data.flat_rows import annotator_pseudonym
    from analysis.data.rule_input import read_test_answers
    from annotators.models import Assignment
    from annotators.participation.simulate import CrowdSettings, record_simulated_answers
    from annotators.places.assign import get_or_create_annotator

    rng = random.Random(seed)
    share = rng.uniform(*NOISY)
    n_noisy = max(1, sum(rng.random() < share for _ in range(people)))
    groups = {
        "careful": numbers_of_batches(rng, people - n_noisy),
        "noisy": numbers_of_batches(rng, n_noisy),
    }
    study = launched_study(people, sum(map(sum, groups.values())))
    noisy: set[str] = set()
    for group, batches in groups.items():
        crowd = CrowdSettings(careless=float(group == "noisy"), screened_out=0, acquiescent=0)
        for round_number in range(batches[0]):
            size = sum(n > round_number for n in batches)
            stream = random.Random(f"{seed} {group} {round_number}")
            record_simulated_answers(study, size, rng=stream, crowd=crowd, name_prefix=group)
        if group == "noisy":
            people_of_group = (get_or_create_annotator("robots", f"noisy-{study.pk}-{n}") for n in range(n_noisy))
            noisy = {annotator_pseudonym(study, annotator.code) for annotator in people_of_group}
    assert Assignment.objects.filter(study=study, submitted_at__isnull=False).count() > people
    return judged(read_test_answers(study, ["robot"]), noisy)


def judged(test_answers: Any, noisy: set[str]) -> list[Person]:
    from analysis.exclusions.screening import (
        ModelSettings,
        SimpleSettings,
        count_by_annotator,
        fails_simple_rule,
        fit_and_screen,
    )

    counts = count_by_annotator(test_answers)
    flagged = {
        name: fit_and_screen(counts, ModelSettings(model=name)).flagged.tolist() for name in (*PUBLISHED, DEFAULT)
    }
    flagged[SIMPLE] = [fails_simple_rule(row, SimpleSettings()) is True for row in counts]
    return [
        Person(row.annotator in noisy, row.n_counted, frozenset(name for name in NAMES if flagged[name][place]))
        for place, row in enumerate(counts)
        if row.n_counted
    ]


def summary(people: Iterable[Person]) -> list[dict[str, Any]]:
    """Return one row for each model and bucket: numbers of noisy, flagged, and rightly flagged people."""
    everybody = list(people)
    rows = []
    for name in NAMES:
        for bucket, numbers in BUCKETS.items():
            own = [person for person in everybody if person.n_counted in numbers]
            flagged = [person for person in own if name in person.flagged_by]
            rows.append(
                {
                    "model": name,
                    "bucket": bucket,
                    "people": len(own),
                    "noisy": sum(person.is_noisy for person in own),
                    "flagged": len(flagged),
                    "right": sum(person.is_noisy for person in flagged),
                }
            )
    return rows


def stored_record() -> dict[str, Any]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {"studies": 0, "people": 0, "rows": []}


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table in the layout of the paper: precision / recall in per cent, ours beside the published."""
    cells = {(row["model"], row["bucket"]): row for row in rows}
    heads = " | ".join(f"{bucket} | published" for bucket in BUCKETS)
    lines = [f"| model | {heads} |", f"|---|{'--:|' * (2 * len(BUCKETS))}"]
    for name in NAMES:
        shown = []
        for place, bucket in enumerate(BUCKETS):
            row = cells[name, bucket]
            published = "{} / {}".format(*PUBLISHED[name][place]) if name in PUBLISHED else ""
            shown.append(
                f"{_percent(row['right'], row['flagged'])} / {_percent(row['right'], row['noisy'])} | {published}"
            )
        lines.append(f"| `{name}` | {' | '.join(shown)} |")
    return lines


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}" if whole else "–"


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tools.proofs.calibration.screening")
    arguments.add_argument("--studies", type=int, default=5)
    given = arguments.parse_args()
    if given.studies < 1:
        arguments.error("there is no study to simulate")
    from tests.golden_site.stored import at_site

    at_site()
    from django.db import connection

    connection.creation.create_test_db(verbosity=0)
    people: list[Person] = []
    for seed in range(given.studies):
        people += simulate_study(seed)
        noisy = Counter(person.is_noisy for person in people)
        print(f"{seed + 1} studies: {len(people)} people, {noisy[True]} of them at random", flush=True)
        rows = summary(people)
        record = {
            "source": "python -m tools.proofs.calibration.screening; fixed seeds",
            "studies": seed + 1,
            "people": len(people),
        }
        RECORD.write_text(json.dumps(record | {"rows": rows}, indent=1) + "\n")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
