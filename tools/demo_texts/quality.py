"""How the writers differ, in numbers: `python -m tools.demo_texts.quality` prints the table of README.md.

None of them is a measure of good writing. They show that each order of the programs keeps closer to the ways of English
than the one before, and that only the human author keeps to the matter of the prompt.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log2
from statistics import mean

from heval_site.management.demo_texts import load_demo_texts

from .make import ORDERS, held_out_fables, load_fables, training_tokens
from .ngrams import SENTENCE_END, NGrams, find_names, tokenise, uncapitalise

RUN_LENGTH = 4


def token_runs(tokens: Sequence[str], length: int) -> list[tuple[str, ...]]:
    """All runs of so many tokens."""
    return [tuple(tokens[place : place + length]) for place in range(len(tokens) - length + 1)]


def attested_share(tokens: Sequence[str], attested: set[tuple[str, ...]]) -> float:
    """The share of the text's runs that also stand in what the writers learned from."""
    found = token_runs(tokens, RUN_LENGTH)
    return sum(run in attested for run in found) / len(found)


def longest_attested_run(tokens: Sequence[str], learned: Iterable[Sequence[str]]) -> int:
    """The number of tokens in the longest run that was taken over whole."""
    texts = ["\n".join(["", *each, ""]) for each in learned]
    longest = 0
    for start in range(len(tokens)):
        while start + longest < len(tokens):
            run = "\n".join(["", *tokens[start : start + longest + 1], ""])
            if not any(run in text for text in texts):
                break
            longest += 1
    return longest


def bits_per_token(tokens: Sequence[str], judge: NGrams) -> float:
    """Minus the mean log-probability of the tokens: the lower, the less the judge is surprised."""
    return mean(-log2(judge.probability(token, tokens[:place])) for place, token in enumerate(tokens))


def reused_names_share(prompt: Sequence[str], output: Sequence[str], names: frozenset[str]) -> float | None:
    """The share of the prompt's names (Fox, Lion, Jupiter) that the output takes up; None where the prompt has none."""
    named = names.intersection(prompt) - {"I", "O"}
    return len(named.intersection(output)) / len(named) if named else None


def measure_writers() -> dict[str, dict[str, float]]:
    """By system: the mean of each measure over the prompts."""
    corpus = load_fables()
    texts = training_tokens(corpus)
    names = find_names(texts)
    learned = [uncapitalise(tokens, names) for tokens in texts]
    attested = {run for tokens in learned for run in token_runs(tokens, RUN_LENGTH)}
    # The judge of a prompt learns from the other held-out fables, of which no writer has seen a word.
    unseen = {
        fable.key: uncapitalise(tokenise(f"{fable.prompt} {fable.continuation}"), names)
        for fable in held_out_fables(corpus)
    }
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in load_demo_texts():
        judge = NGrams((text for key, text in unseen.items() if key != record["key"]), order=3, discount=0.75)
        prompt = uncapitalise(tokenise(record["prompt"]), names)
        for system, output in record["outputs"].items():
            tokens = uncapitalise(tokenise(output), names)
            share = reused_names_share(prompt, tokens, names)
            found[system]["words"].append(len(output.split()))
            found[system]["words a sentence"].append(len(output.split()) / tokens.count(SENTENCE_END))
            found[system]["bits a token"].append(bits_per_token(tokens, judge))
            found[system]["attested share"].append(attested_share(tokens, attested))
            found[system]["longest attested"].append(longest_attested_run(tokens, learned))
            found[system]["names taken up"].extend([] if share is None else [share])
    return {system: {name: mean(values) for name, values in each.items()} for system, each in found.items()}


def measures_table() -> str:
    """The measures as a Markdown table."""
    by_system = measure_writers()
    names = list(by_system[next(iter(ORDERS))])
    rows = [["system", *names], ["---", *("---:" for _ in names)]]
    rows += [[system, *(f"{each[name]:.2f}" for name in names)] for system, each in by_system.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(measures_table())
