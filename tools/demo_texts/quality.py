"""Measure how the systems of the demo differ. `python -m tools.demo_texts.quality` prints the table of README.md.

The numbers do not measure good writing. They show that models of a higher order write more natural English, and that only the
human author stays on the topic of the prompt.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log2
from statistics import mean

from heval_site.management.demo_texts import load_demo_texts

from .make import ORDERS, held_out_fables, load_fables, training_tokens
from .ngrams import SENTENCE_END, NGrams, find_proper_names, lower_sentence_starts, tokenise

RUN_LENGTH = 4


def token_runs(tokens: Sequence[str], length: int) -> list[tuple[str, ...]]:
    """Return all runs of ``length`` tokens."""
    return [tuple(tokens[place : place + length]) for place in range(len(tokens) - length + 1)]


def attested_share(tokens: Sequence[str], attested_runs: set[tuple[str, ...]]) -> float:
    """Return the share of the text's runs that are also in the training texts."""
    runs = token_runs(tokens, RUN_LENGTH)
    return sum(run in attested_runs for run in runs) / len(runs)


def longest_attested_run(tokens: Sequence[str], training_texts: Iterable[Sequence[str]]) -> int:
    """Return the length of the longest run that is copied from a training text."""
    texts = ["\n".join(["", *each, ""]) for each in training_texts]
    longest = 0
    for start in range(len(tokens)):
        while start + longest < len(tokens):
            run = "\n".join(["", *tokens[start : start + longest + 1], ""])
            if not any(run in text for text in texts):
                break
            longest += 1
    return longest


def bits_per_token(tokens: Sequence[str], judge: NGrams) -> float:
    """Return the negative mean log2-probability of the tokens. Lower values mean more expected text."""
    return mean(-log2(judge.probability(token, tokens[:place])) for place, token in enumerate(tokens))


def reused_names_share(prompt: Sequence[str], output: Sequence[str], names: frozenset[str]) -> float | None:
    """Return the share of the prompt's names (Fox, Lion, Jupiter) that the output uses. None if the prompt has no names."""
    named = names.intersection(prompt) - {"I", "O"}
    return len(named.intersection(output)) / len(named) if named else None


def mean_measures_by_system() -> dict[str, dict[str, float]]:
    """Return the mean of each measure over the prompts, by system."""
    corpus = load_fables()
    texts = training_tokens(corpus)
    names = find_proper_names(texts)
    learned = [lower_sentence_starts(tokens, names) for tokens in texts]
    attested = {run for tokens in learned for run in token_runs(tokens, RUN_LENGTH)}
    # The judge of a prompt learns from the other held-out fables, which no model has seen.
    unseen = {
        fable.key: lower_sentence_starts(tokenise(f"{fable.prompt} {fable.continuation}"), names)
        for fable in held_out_fables(corpus)
    }
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in load_demo_texts():
        judge = NGrams((text for key, text in unseen.items() if key != record["key"]), order=3, discount=0.75)
        prompt = lower_sentence_starts(tokenise(record["prompt"]), names)
        for system, output in record["outputs"].items():
            tokens = lower_sentence_starts(tokenise(output), names)
            share = reused_names_share(prompt, tokens, names)
            found[system]["words"].append(len(output.split()))
            found[system]["words a sentence"].append(len(output.split()) / tokens.count(SENTENCE_END))
            found[system]["bits a token"].append(bits_per_token(tokens, judge))
            found[system]["attested share"].append(attested_share(tokens, attested))
            found[system]["longest attested"].append(longest_attested_run(tokens, learned))
            found[system]["names taken up"].extend([] if share is None else [share])
    return {system: {name: mean(values) for name, values in each.items()} for system, each in found.items()}


def measures_table() -> str:
    """Return the measures as a Markdown table."""
    by_system = mean_measures_by_system()
    names = list(by_system[next(iter(ORDERS))])
    rows = [["system", *names], ["---", *("---:" for _ in names)]]
    rows += [[system, *(f"{each[name]:.2f}" for name in names)] for system, each in by_system.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(measures_table())
