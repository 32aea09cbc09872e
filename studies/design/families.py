"""The order of the families of comparisons."""

from collections.abc import Mapping


def families_before(name: str, after: Mapping[str, str]) -> list[str]:
    """Return the families that must be shown before this one, the nearest first. ``after``: the one before, or '', by name.

    >>> families_before("c", {"c": "b", "b": "a"}), families_before("a", {"a": "b", "b": "a"})
    (['b', 'a'], ['b', 'a'])
    """
    before: list[str] = []
    while (name := after.get(name, "")) and name not in before:
        before.append(name)
    return before


def order_fault(after: Mapping[str, str]) -> str:
    """Return why families cannot be tested in this order, or ''.

    >>> order_fault({"secondary": "primary"}), order_fault({"a": "b", "b": "a"})
    ('', 'must not wait for each other: a after b after a. Empty one of the fields “after”.')
    """
    for name in after:
        before = families_before(name, after)
        if name in before:
            cycle = [name, *before[: before.index(name) + 1]]
            return f"must not wait for each other: {' after '.join(cycle)}. Empty one of the fields “after”."
    return ""
