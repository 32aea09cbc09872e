"""What a result is about: which units represent others like them, and which are exactly those of the study."""

# People and prompts like those of the study, or people only, for exactly these prompts.
PEOPLE_AND_PROMPTS, PEOPLE = "people and prompts", "people"
# What a design can declare for a comparison (the values of its column); empty is not declared.
DECLARED_POPULATIONS = ("", "people_and_prompts", "people")


def validate_population(population: str) -> None:
    """Raise ValueError if no design can declare this population.

    >>> validate_population("people")
    """
    if population not in DECLARED_POPULATIONS:
        raise ValueError(f"population: {population!r} is not one of {', '.join(map(repr, DECLARED_POPULATIONS))}")


def too_few_prompts(n: int, unit: str = "prompts") -> str:
    """Return the reason why so few prompts give no interval about prompts like these.

    >>> too_few_prompts(1)
    '1 prompt is too few for an interval about prompts like these, which needs five'
    """
    one = unit.replace("groups", "group") if unit.startswith("groups") else unit[:-1]
    return f"{f'1 {one} is' if n == 1 else f'{n} {unit} are'} too few for an interval about prompts like these, which needs five"
