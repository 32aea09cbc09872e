"""Score chunks in as many processes as this machine has processors.

The processes are plain children with pipes, because a worker of Celery may not start children with ``multiprocessing``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, cast

from .built_in import BUILT_IN
from .chunks import ChunkScorer, ScoreFailed, TextsOfPrompt

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
