"""The difference between people in two conditions, in closed form and without numpy; see `quick_power`."""

from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from analysis.stats.plan_inputs import FEWEST_PROMPTS, StudySize

if TYPE_CHECKING:
    from analysis.stats.quick_power import Components

_NORMAL = NormalDist()


def components_of_difference(x: "Components", y: "Components", kind: str) -> "Components":
    """Return the expected difference of two conditions, and the variances of one answer, averaged over both.

    `x` and `y` have the share of right answers under each condition and the variances of one answer; the result is on
    the scale of the difference, which is that of the shares for `kind` "accuracy" and that of d' for "sensitivity".
    With as many human as machine texts and no leaning, d' is 2 Phi^-1(share of right answers), and its variances follow
    by the derivative.

    >>> from analysis.stats.quick_power import Components
    >>> x, y = (Components(mean=p, people=0.01, prompts=0.03, rest=0.2) for p in (0.6, 0.5))
    >>> round(components_of_difference(x, y, "accuracy").mean, 3), round(components_of_difference(x, y, "sensitivity").mean, 3)
    (0.1, 0.507)
    """
    slopes, values = [1.0, 1.0], [x.mean, y.mean]
    if kind == "sensitivity":
        places = [_NORMAL.inv_cdf(share) for share in values]
        slopes, values = [2 / _NORMAL.pdf(z) for z in places], [2 * z for z in places]

    def mean_of(name: str) -> float:
        return float(sum(slope**2 * getattr(one, name) for slope, one in zip(slopes, (x, y), strict=True)) / 2)

    return replace(
        x, mean=values[0] - values[1], people=mean_of("people"), prompts=mean_of("prompts"), rest=mean_of("rest")
    )


def variances_of_difference(parts: "Components", size: StudySize) -> tuple[float, float, float]:
    """Return the variance of the difference of two conditions, that which the report finds, and its degrees of freedom.

    `parts` are from `components_of_difference`; the second value is the expected value of the reported variance, to
    which the degrees of freedom belong. Both conditions show the same prompts, so the differences between prompts
    cancel, except for prompts that one condition shows once more than others. The report (`groups.cell_contrast`) takes
    the largest of the variances over people, over prompts, and of both combined; that over people still has the
    differences between the prompts that each person saw.

    >>> from analysis.stats.quick_power import Components
    >>> size = StudySize(protocol="accuracy_between_conditions", people=80, prompts=40, prompts_each=10, conditions=2)
    >>> true, reported, df = variances_of_difference(Components(mean=0.1, people=0.01, prompts=0.03, rest=0.2), size)
    >>> round(true, 5), round(reported, 5), df
    (0.0015, 0.00161, 79.0)
    """
    people, prompts, each = size.people_each, size.prompts, size.prompts_each
    answers = people * each
    uneven = (answers / prompts) % 1
    of_prompts = 2 * parts.prompts * prompts * uneven * (1 - uneven) / answers**2
    true = 2 * (parts.people / people + parts.rest / answers) + of_prompts
    over_people = 2 * (parts.people / people + (parts.rest + parts.prompts * (1 - each / prompts)) / answers)
    over_prompts = 2 * (parts.rest + parts.people * (1 - 1 / people)) / answers + of_prompts
    df_people, df_prompts = max(1.0, 2 * people - 1.0), max(1.0, prompts - 1.0)
    if prompts < FEWEST_PROMPTS or over_people >= max(true, over_prompts):
        return true, over_people, df_people
    if over_prompts >= true:
        return true, over_prompts, df_prompts
    return true, true, max(1.0, true**2 / (over_people**2 / df_people + over_prompts**2 / df_prompts))
