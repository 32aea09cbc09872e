"""Table 1 of Dawid and Skene 1979: five anaesthetists judge how fit 45 patients are for an operation, from 1 to 4.

A row is a patient: three judgements of the first anaesthetist, then one of each other.
"""

TABLE = """
111 1111  333 4334  112 2122  222 3121  222 3222  222 3322  122 2111  333 3433  222 2223
232 2223  444 4444  222 3343  111 1111  222 3212  121 1111  111 2111  111 1111  111 1111
222 2221  222 1322  222 2222  222 2221  222 3222  221 2222  111 1111  111 1111  232 2222
111 1111  111 1111  112 1121  111 1111  333 3233  111 1111  222 2222  222 3232  433 4343
221 2232  232 3233  333 3432  111 1111  111 1111  121 2111  232 2222  121 1111  222 2222
"""


def anaesthetists() -> tuple[list[int], list[int], list[str]]:
    """Return patients, anaesthetists and judgements, one row each."""
    words = TABLE.split()
    rows = [
        (patient, who, judgement)
        for patient, (first, others) in enumerate(zip(words[::2], words[1::2], strict=True))
        for who, judgement in [*((1, one) for one in first), *enumerate(others, 2)]
    ]
    return tuple(list(column) for column in zip(*rows, strict=True))
