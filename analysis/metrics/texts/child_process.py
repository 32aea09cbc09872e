"""A process that scores texts: ``python -m analysis.metrics.texts.child_process METRIC ...``, started only by ``processes``.

It reads chunks and writes their scores, one line of JSON each, until its input is closed.
"""

import gc
import json
import os
import sys

from .processes import ChunkScorer, ScoreFailed, TextsOfPrompt

# Pages of annotators come before scores when processors are busy.
POLITENESS = 5


def main(names: list[str]) -> None:
    os.nice(POLITENESS)
    # TER makes millions of small objects and no cycles of them: looking for cycles took a sixth of its time.
    gc.disable()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # What a library prints must not be taken for an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    scorer = ChunkScorer(names)
    for line in sys.stdin:
        chunk = [TextsOfPrompt(*prompt) for prompt in json.loads(line)]
        try:
            answer: dict = {"scores": scorer.score(chunk)}
        except ScoreFailed as failed:
            answer = {"failed": [failed.metric, failed.place, failed.message]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
