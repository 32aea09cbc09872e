"""What a finished study shows about the assumptions of its plan, without numpy."""

from analysis.stats.quick_power import Components


def components_of_variances(
    mean: float,
    over_people: float,
    over_prompts: float,
    combined: float,
    *,
    people: int,
    prompts: int,
    answers: int,
) -> Components | None:
    """Return the variances of one answer over people, over prompts, and the rest, from the variances of a reported mean.

    `over_people`, `over_prompts` and `combined` are the jackknife variances of the mean (`clusters.TwoWayVariance`).
    With a people, b prompts and n answers in a balanced layout, their expected values are V_a = v_people / a + (v_rest
    + v_prompts (1 - n / (a b))) / n, likewise V_b, and that of independent answers is V_a + V_b - combined = (v_people
    (1 - 1 / a) + v_prompts (1 - 1 / b) + v_rest) / n. The three equations are solved, and a variance with a negative
    solution is 0. The result is None if people answer about too few prompts, or too few people about each, to tell them
    apart.

    >>> found = components_of_variances(0.6, 0.0022, 0.0030, 0.0044, people=36, prompts=60, answers=720)
    >>> round(found.people, 3), round(found.prompts, 3), round(found.rest, 3)
    (0.055, 0.145, 0.379)
    """
    if answers < 1.5 * people or answers < 1.5 * prompts or people < 2 or prompts < 2:
        return None
    independent = over_people + over_prompts - combined
    # Coefficients of v_people and v_prompts in n (V_a - V_ab) and n (V_b - V_ab), from which the rest is gone.
    aa, ab = (answers + 1) / people - 1, (1 - answers / people) / prompts
    ba, bb = (1 - answers / prompts) / people, (answers + 1) / prompts - 1
    a, b = answers * (over_people - independent), answers * (over_prompts - independent)
    determinant = aa * bb - ab * ba
    if abs(determinant) < 1e-9:
        return None
    v_people = max(0.0, (a * bb - b * ab) / determinant)
    v_prompts = max(0.0, (b * aa - a * ba) / determinant)
    rest = answers * independent - v_people * (1 - 1 / people) - v_prompts * (1 - 1 / prompts)
    return Components(mean=mean, people=v_people, prompts=v_prompts, rest=max(0.0, rest))
