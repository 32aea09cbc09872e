"""Labels of a random part of many outputs, and judges' scores of all, with people and prompts that differ."""

from typing import Any

import numpy as np

# The spreads of people, prompts and single labels on a five-point scale, after a public study of translations.
SD_PEOPLE, SD_PROMPTS, SD_LABELS = 0.57, 0.75, 0.72


def rated_items(
    draw: np.random.Generator,
    *,
    people: int = 20,
    prompts: int = 40,
    items: int = 300,
    each: int = 2,
    accuracies: tuple[float, ...] = (0.8,),
    shift: float = 0.0,
    sd_people: float = SD_PEOPLE,
) -> dict[str, Any]:
    """Labels of the first prompts by different people. A judge's accuracy is its correlation with the true score, of mean 0."""
    quality = draw.normal(0, SD_PROMPTS, items)
    labelled = np.repeat(np.arange(prompts), each)
    who = np.concatenate([draw.choice(people, each, replace=False) for _ in range(prompts)])
    values = quality[labelled] + draw.normal(0, sd_people, people)[who] + draw.normal(0, SD_LABELS, len(labelled))
    judges = np.stack(
        [
            shift + SD_PROMPTS * (a * quality / SD_PROMPTS + np.sqrt(1 - a**2) * draw.normal(0, 1, items))
            for a in accuracies
        ],
        axis=1,
    )
    return {"values": values, "annotators": who, "items": labelled, "judges": judges}
