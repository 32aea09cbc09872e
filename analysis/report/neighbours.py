"""Whether prompts that count as independent seem to belong together: neighbours with similar answers, or a shared source."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from django.db.models import Count

from analysis.data.context import AnalysisContext
from analysis.protocols import HeadlineAnswers
from studies.models import Study

if TYPE_CHECKING:
    from analysis.stats.arrays import FloatArray


def count_prompts_with_shared_source(study: Study) -> int:
    """Return how many prompts without a group have the source text of another one."""
    alone = study.prompts.filter(group="").exclude(source="")
    shared = alone.order_by().values("source").annotate(n=Count("pk")).filter(n__gt=1)
    return sum(shared.values_list("n", flat=True))


def similar_neighbours(
    study: Study, contexts: Sequence[AnalysisContext], headlines: Mapping[str, Sequence[HeadlineAnswers]]
) -> "Iterator[float]":
    """Yield the correlation of neighbouring prompts, in the order of import, for each protocol in which they have similar answers.

    ``headlines``: the answers behind the headlines, by protocol.

    A study with groups says itself what belongs together. One answer about all that a person read has no prompt.
    """
    from analysis.stats.clusters import neighbour_dependence

    if study.prompts.exclude(group="").exists():
        return
    places = {key: place for place, key in enumerate(study.prompts.order_by("pk").values_list("key", flat=True))}
    for context in contexts:
        found = headlines[context.protocol]
        if not any(section.questions.filter(x__isnull=False).exists() for section in context.sections) and found:
            dependence = neighbour_dependence(_contributions(found, places), rng=context.rng("neighbours"))
            if dependence.is_found and dependence.correlation is not None:
                yield dependence.correlation


def _contributions(answers: Sequence[HeadlineAnswers], places: Mapping[str, int]) -> "FloatArray":
    """Return the sum of the residuals of each judged prompt (rows, in the order of import) for each comparison (columns).

    A residual is an answer less the mean of the person's answers. So people who judged neighbours do not make them alike.
    """
    import numpy as np

    from analysis.stats.arrays import group_sums, label_codes

    sums, judged = np.zeros((len(places), len(answers))), np.zeros(len(places), dtype=bool)
    for column, one in enumerate(answers):
        # A text of its own, whose label begins with the key of its prompt, counts as the prompt.
        names = [*one.prompts.categories, ""]
        own = np.array([places.get(str(name).partition("\x1f")[0], -1) for name in names])[one.prompts.codes]
        used = own >= 0
        if not used.any():
            continue
        values, (people, n_people) = (
            one.values[used],
            label_codes(one.annotators.codes[used], "annotators", int(used.sum())),
        )
        counts = np.bincount(people, minlength=n_people)
        # The only answer of a person says nothing about the person.
        means = np.where(counts > 1, group_sums(people, values, n_people) / counts, values.mean())
        sums[:, column] = np.bincount(own[used], values - means[people], minlength=len(places))
        judged[own[used]] = True
    return sums[judged]
