"""Score chunks in as many processes as this machine has processors.

The processes are plain children with pipes, because a worker of Celery may not start children with ``multiprocessing``.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, cast

from .built_in import BUILT_IN, scorers

# Score a chunk of outputs: some prompts, each with its references and the texts beside them.


class ScoreFailed(Exception):
    """A metric raised an error, or gave no finite number (``message`` is empty then), for the text at ``place`` of a chunk."""

    def __init__(self, metric: str, place: int, message: str = "", chunk: int = 0):
        super().__init__(metric, place, message, chunk)
        self.metric, self.place, self.message, self.chunk = metric, place, message, chunk


@dataclass(frozen=True, slots=True)
class TextsOfPrompt:
    """The references of a prompt, the texts to score beside them, and their declared language."""

    references: list[str]
    texts: list[str]
    language: str = ""


def describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


class ChunkScorer:
    """Score chunks with these built-in metrics. Libraries and what they remember are kept between chunks."""

    def __init__(self, names: Sequence[str]):
        self.families = list(scorers(names))

    def score(self, chunk: Sequence[TextsOfPrompt]) -> dict[str, list[float]]:
        """Return the scores of a chunk's texts in their order, by metric. Raise ScoreFailed for the first that cannot be scored."""
        found: dict[str, list[float]] = {name: [] for names, _ in self.families for name in names}
        place = 0
        for prompt in chunk:
            for names, beside in self.families:
                self._score_prompt(prompt, names, beside, place, found)
            place += len(prompt.texts)
        return found

    @staticmethod
    def _score_prompt(prompt: TextsOfPrompt, names: list[str], beside: Any, place: int, found: dict) -> None:
        # Systems often give the same output; its score is the same.
        known: dict[str, dict[str, float]] = {}
        score = None
        for offset, text in enumerate(prompt.texts):
            if text not in known:
                try:
                    score = score or beside(prompt.references, prompt.language)
                    known[text] = dict(score(text))
                except Exception as error:  # a library may raise anything, and the researcher must learn where
                    raise ScoreFailed(names[0], place + offset, describe_error(error)) from error
            for name in names:
                if not math.isfinite(known[text][name]):
                    raise ScoreFailed(name, place + offset)
                found[name].append(known[text][name])


# How long TER takes, before it starts and while it is computed.


# Seconds of one processor for one output, by its words. Low: the reference with words changed and moved, as of translations. High:
# another text about the same prompt. Docs: explanation/performance.
LOW = ((10, 0.0002), (25, 0.001), (40, 0.003), (80, 0.01), (160, 0.03), (320, 0.1))
HIGH = ((10, 0.0002), (25, 0.0014), (40, 0.006), (80, 0.045), (160, 0.18), (320, 2.0))
# A shorter time needs no word before the start.
SECONDS_WORTH_A_WORD = 30
# A word and the space after it, for texts whose words were not counted.
CHARACTERS_PER_WORD = 6


def seconds_per_output(words: float, measured: tuple[tuple[int, float], ...]) -> float:
    """Return the time for texts of so many words, on straight lines between the measured ones when both are logarithms."""
    ends = next((two for two in pairwise(measured) if words <= two[1][0]), measured[-2:])
    (first, low), (second, high) = ends
    slope = math.log(high / low) / math.log(second / first)
    return low * (max(words, 1.0) / first) ** slope


def forecast(n_outputs: int, mean_words: float, n_processors: int) -> str:
    """Return in words how long TER takes for so many outputs, or nothing if it is soon over."""
    low, high = (n_outputs * seconds_per_output(mean_words, times) / n_processors for times in (LOW, HIGH))
    if high < SECONDS_WORTH_A_WORD:
        return ""
    shortest, longest = in_words(low), in_words(high)
    return shortest if shortest == longest else f"{shortest} to {longest}"


def time_left(elapsed: float, n_done: int, n: int) -> str:
    """Return in words how long the rest takes at the speed so far, or nothing while that is a guess or soon over."""
    seconds = elapsed / n_done * (n - n_done) if n_done else 0.0
    return f"about {in_words(seconds)} left" if min(elapsed, seconds) >= 10 else ""


def in_words(seconds: float) -> str:
    """Return a time as one rounded number with its unit."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 0.95 * size:
            number = max(1, round(seconds / size))
            return f"{number:,} {unit}{'' if number == 1 else 's'}"
    return f"{max(10, round(seconds, -1)):.0f} seconds"


# A process needs about a second to load the libraries, so few texts are scored here. A slow metric needs about that for each text.
TEXTS_WORTH_A_PROCESS, SLOW_TEXTS_WORTH_A_PROCESS = 500, 20
MOST_PROCESSES = 8


class ProcessEnded(Exception):
    """A process ended before it answered, for example because the machine has no memory left."""


def n_processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def score_chunks(
    names: Sequence[str], chunks: Sequence[Sequence[TextsOfPrompt]], n_processes: int | None = None
) -> Generator[tuple[int, dict[str, list[float]]], None, None]:
    """Yield the number of each chunk with its scores, in the order in which they are ready.

    Parameters
    ----------
    names : sequence of str
        Built-in metrics.
    chunks : sequence of sequences of TextsOfPrompt
        What is scored together.
    n_processes : int, optional
        How many processes. None: as many as there are processors, and none besides this one for few texts.

    Raises
    ------
    ScoreFailed
        A text could not be scored. Its ``chunk`` is the number of its chunk.
    ProcessEnded
        A process ended early.
    """
    if n_processes is None:
        n_texts = sum(len(prompt.texts) for chunk in chunks for prompt in chunk)
        is_slow = any(BUILT_IN[name].is_slow for name in names)
        worth = SLOW_TEXTS_WORTH_A_PROCESS if is_slow else TEXTS_WORTH_A_PROCESS
        n_processes = min(n_processors(), MOST_PROCESSES, len(chunks), n_texts // worth)
    if n_processes < 2:
        scorer = ChunkScorer(names)
        for number, chunk in enumerate(chunks):
            with _naming_chunk(number):
                scores = scorer.score(chunk)
            yield number, scores
        return
    with ExitStack() as stack:
        # After an error the work is cancelled first, then the processes end. Then no thread waits for an answer any more.
        threads = stack.enter_context(ThreadPoolExecutor(n_processes))
        free: SimpleQueue[_ScoringProcess] = SimpleQueue()
        for _ in range(n_processes):
            free.put(stack.enter_context(_ScoringProcess(names)))
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)

        def score(number: int) -> tuple[int, dict[str, list[float]]]:
            process = free.get()
            try:
                with _naming_chunk(number):
                    return number, process.score(chunks[number])
            finally:
                free.put(process)

        for done in as_completed([threads.submit(score, number) for number in range(len(chunks))]):
            yield done.result()


@contextmanager
def _naming_chunk(number: int) -> Iterator[None]:
    try:
        yield
    except ScoreFailed as failed:
        failed.chunk = number
        raise


class _ScoringProcess:
    """A child that reads chunks and writes their scores, one line of JSON each. It ends when its input is closed."""

    def __init__(self, names: Sequence[str]):
        self.names = list(names)

    def __enter__(self) -> "_ScoringProcess":
        self.process = subprocess.Popen(  # noqa: S603 - this interpreter, our own module, and names of metrics
            [sys.executable, "-m", "analysis.metrics.texts.child_process", *self.names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[3],
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.input, self.output = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)
        return self

    def score(self, chunk: Sequence[TextsOfPrompt]) -> dict[str, list[float]]:
        sent = json.dumps([[prompt.references, prompt.texts, prompt.language] for prompt in chunk])
        try:
            self.input.write(sent + "\n")
            self.input.flush()
            line = self.output.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        if not line:
            raise ProcessEnded
        answer = json.loads(line)
        if "failed" in answer:
            raise ScoreFailed(*answer["failed"])
        return answer["scores"]

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.input, self.output):
            with suppress(BrokenPipeError):
                pipe.close()
