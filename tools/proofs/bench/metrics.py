"""What the built-in metrics of many outputs cost.

    python -m tools.proofs.bench.metrics [--outputs 10000] [--systems 20] [--words 25] [--only ter,chrf]
    python -m tools.proofs.bench.metrics --bounds

It makes a study in a new SQLite database, computes all eight metrics as the job does, and stores them. Then it prints the seconds
of the wall clock, the seconds of CPU of this process and its children, and the memory of the largest child. The outputs are references with words replaced and
moved, so that TER has shifts to search. With ``--bounds`` it compares only TER with sacreBLEU's own, and fails if a bound is broken.
"""

import argparse
import random
import resource
import sys
import tempfile
import time

from tools.proofs.bench.board_submission import set_up

# As in a language, the word of rank r is drawn in proportion to 1 / r.
ENDINGS = ("", "s", "ing", "ed", "er", "ation", "ly", "ness", "able", "ment")
VOCABULARY = [
    f"{first}{vowel}{last}{ending}"
    for ending in ENDINGS
    for vowel in "aeiou"
    for first in "bdgklmprst"
    for last in "dmnt"
]
FREQUENCIES = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]


def reference_text(draw: random.Random, words: int) -> list[str]:
    return draw.choices(VOCABULARY, FREQUENCIES, k=draw.randint(words // 2, words * 3 // 2))


def output_text(draw: random.Random, reference: list[str], share: float) -> list[str]:
    """The reference with a share of its words replaced, and part of it moved."""
    others = draw.choices(VOCABULARY, FREQUENCIES, k=len(reference))
    words = [new if draw.random() < share else word for word, new in zip(reference, others, strict=True)]
    start, length, target = draw.randrange(len(words)), draw.randint(1, 4), draw.randrange(len(words))
    moved = words[start : start + length]
    rest = words[:start] + words[start + length :]
    return rest[:target] + moved + rest[target:]


def study_of(n_outputs: int, n_systems: int, n_words: int):
    """A study with a human reference for each prompt and ``n_outputs`` outputs of other systems."""
    from studies.models import Output, Prompt, System
    from tests.boards import builders
    from tests.builders import user

    draw = random.Random(1)
    names = ["human", *(f"system {number}" for number in range(n_systems))]
    study = builders.rating_template(user("owner"), systems=names, prompts=1)
    Output.objects.filter(system__study=study).delete()
    Prompt.objects.filter(study=study).delete()
    n_prompts = n_outputs // n_systems
    prompts = Prompt.objects.bulk_create(
        Prompt(study=study, key=f"q{number:06}", text="A prompt.") for number in range(n_prompts)
    )
    systems = list(System.objects.filter(study=study).order_by("pk"))
    outputs = []
    for prompt in prompts:
        reference = reference_text(draw, n_words)
        outputs.append(Output(system=systems[0], prompt=prompt, text=" ".join(reference)))
        for number, system in enumerate(systems[1:]):
            text = output_text(draw, reference, 0.6 * number / n_systems)
            outputs.append(Output(system=system, prompt=prompt, text=" ".join(text)))
    Output.objects.bulk_create(outputs, batch_size=1000)
    return study


def cpu_seconds() -> tuple[float, float]:
    mine, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime, children.ru_utime + children.ru_stime


TER_BOUND = 8.0  # sacreBLEU's seconds of CPU divided by heval's


def compare_ter(n_texts: int = 30, n_words: int = 80) -> bool:
    """Score other texts about the same prompt in both ways, and return whether the scores are equal and heval is so much faster."""
    from sacrebleu.metrics import TER, lib_ter

    own = lib_ter.BeamEditDistance
    from analysis.metrics.texts.edit_distance import use_fast_edit_distance

    draw = random.Random(1)
    pairs = [[" ".join(reference_text(draw, n_words)) for _ in range(2)] for _ in range(n_texts)]

    def score_all() -> tuple[list[float], float]:
        started = time.process_time()
        scores = [TER().sentence_score(text, [reference]).score for text, reference in pairs]
        return scores, time.process_time() - started

    ratios, are_equal = [], True
    for _ in range(3):
        lib_ter.BeamEditDistance = own
        expected, slow = score_all()
        use_fast_edit_distance()
        found, fast = score_all()
        ratios.append(slow / fast)
        are_equal = are_equal and found == expected
    holds = are_equal and min(ratios) >= TER_BOUND
    print(
        f"{'holds ' if holds else 'MISSED'} TER, {n_words} words: {min(ratios):.1f} to {max(ratios):.1f} times as fast as sacreBLEU "
        f"(>= {TER_BOUND:g}), scores {'equal' if are_equal else 'DIFFER'}"
    )
    return holds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--systems", type=int, default=20)
    parser.add_argument("--words", type=int, default=25, help="of a mean reference")
    parser.add_argument("--only", default="", help="names of metrics, with commas")
    parser.add_argument("--bounds", action="store_true", help="only compare TER with sacreBLEU's own")
    chosen = parser.parse_args()
    if chosen.bounds:
        sys.exit(not compare_ter())
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        from analysis.metrics.computed import compute_metrics
        from analysis.metrics.texts.built_in import BUILT_IN

        study = study_of(chosen.outputs, chosen.systems, chosen.words)
        names = chosen.only.split(",") if chosen.only else list(BUILT_IN)
        before, started = cpu_seconds(), time.perf_counter()
        stored = compute_metrics(study, study.owner, names)
        taken = time.perf_counter() - started
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        mine, children = (after - first for after, first in zip(cpu_seconds(), before, strict=True))
        print(
            f"{len(stored)} metrics of {stored[0].n_scores:,} outputs: {taken:.1f} s; "
            f"CPU {mine:.1f} s here, {children:.1f} s in children, peak of a child {peak:.0f} MB"
        )


if __name__ == "__main__":
    main()
