"""The tests read rows of a file with these functions."""

from studies.stimuli.rows import read_rows


def read(name, data, **options):
    """(values of the rows, problems) of a file given as text or bytes."""
    rows = read_rows(name, data.encode() if isinstance(data, str) else data, **options)
    return [dict(row.values) for row in rows], rows.problems


def sound(name, data, **options):
    values, problems = read(name, data, **options)
    assert list(problems) == []
    return values


def only_problem(name, data, **options):
    values, problems = read(name, data, **options)
    assert problems.count == 1, list(problems)
    return problems.first[0]
