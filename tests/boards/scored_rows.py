"""Rows of scores of a board with several rounds, as the results read them."""

import numpy as np
import pandas as pd

# Submission: its true score. Number 1 is the human reference, which is an anchor.
TRUTH = {1: 0.80, 2: 0.50, 3: 0.60, 4: 0.62, 5: 0.75}
ROUNDS = {1: [1, 2, 3], 2: [1, 3, 4], 3: [1, 3, 5]}
NEW = {2: 1, 3: 1, 4: 2, 5: 3}


def rows_of(rounds, *, leniency=None, truth=TRUTH, prompts=40, people=24, seed=0, labels=2, group_size=1):
    """Rows as ``read_board_rows`` gives them. ``rounds``: the submissions of each round."""
    rng = np.random.default_rng(seed)
    of_prompt = np.repeat(rng.normal(0, 0.08, prompts // group_size), group_size)
    frames = []
    for number, systems in rounds.items():
        of_person = rng.normal(0, 0.05, people)
        for system in systems:
            prompt = np.tile(np.arange(prompts), labels)
            person = rng.integers(0, people, prompts * labels)
            value = truth[system] + (leniency or {}).get(number, 0) + of_prompt[prompt] + of_person[person]
            value = np.clip(value + rng.normal(0, 0.12, len(prompt)), 0, 1).round(2)
            frames.append(
                pd.DataFrame(
                    {
                        "criterion": "overall",
                        "value": value,
                        "system": system,
                        "other": None,
                        "is_first": None,
                        "prompt": [f"p{n}" for n in prompt],
                        "domain": "",
                        "annotator": person + 1000 * number,
                        "second_sample": [f"p{n}" if group_size == 1 else f"\x1fg{n // group_size}" for n in prompt],
                        "day": f"2026-11-{number:02}",
                        "round": number,
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)
