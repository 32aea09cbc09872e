"""Studies to be answered by clients: ratings of two systems, one prompt a page. Run in a site's environment; prints JSON.

python -m tools.proofs.bench.study NAME PLACES PAGES [SECTIONS]
"""

import json
import sys

import django

WORDS = [
    "the",
    "old",
    "ferry",
    "left",
    "its",
    "mooring",
    "before",
    "dawn",
    "and",
    "nobody",
    "on",
    "the",
    "quay",
    "could",
    "say",
    "who",
    "had",
    "paid",
    "the",
    "pilot",
    "or",
    "why",
    "the",
    "lamps",
    "were",
    "out",
    "while",
    "the",
    "harbour",
    "master",
    "counted",
    "ropes",
    "and",
    "waited",
    "for",
    "the",
    "tide",
    "to",
    "turn",
]
PER_BATCH = 4


def text_of(system: str, number: int) -> str:
    """About 110 words: a short paragraph, as stories and summaries have."""
    turned = WORDS[number % len(WORDS) :] + WORDS[: number % len(WORDS)]
    return f"{system} {number}: {' '.join(turned * 3)}."


def build(name: str, places: int, pages: int, sections: int = 1, prompts: int = 0):
    """A launched study with a panel's link. Every page shows one prompt with two texts and asks for a rating of each."""
    from studies.models import Output, Prompt, System
    from tests.builders import add_rating, draft_study, launched, panel

    study = draft_study(
        systems=(), prompts=0, target_n=places, title=name, instructions="", annotators_per_batch=PER_BATCH, seed=11
    )
    systems = System.objects.bulk_create([System(study=study, name="left"), System(study=study, name="right")])
    asked = Prompt.objects.bulk_create(
        Prompt(study=study, key=f"p{n:05}", text=f"Tell of the ferry, number {n}.")
        for n in range(prompts or pages * sections + 20)
    )
    Output.objects.bulk_create(
        (
            Output(system=system, prompt=prompt, text=text_of(system.name, n))
            for n, prompt in enumerate(asked)
            for system in systems
        ),
        batch_size=500,
    )
    for position in range(1, sections + 1):
        add_rating(study, position=position, m=pages)
    study = launched(study)
    return study, panel(study)


def main(name: str, places: str, pages: str, sections: str = "1", prompts: str = "0") -> None:
    study, door = build(name, int(places), int(pages), int(sections), int(prompts))
    json.dump({"study": study.pk, "code": str(study.code), "door": f"/e/{door.key}/?who="}, sys.stdout)


if __name__ == "__main__":
    django.setup()
    main(*sys.argv[1:])
