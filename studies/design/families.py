"""The order of the families of comparisons."""

from collections.abc import Mapping


def order_fault(after: Mapping[str, str]) -> str:
    """Return why families cannot be tested in this order, or ''. ``after``: the family before, or '', by name.

    >>> order_fault({"secondary": "primary"}), order_fault({"a": "b", "b": "a"})
    ('', 'must not wait for each other: a after b after a. Empty one of the fields “after”.')
    """
    for name in after:
        chain = [name]
        while after.get(chain[-1]):
            chain.append(after[chain[-1]])
            if chain[-1] == name:
                return f"must not wait for each other: {' after '.join(chain)}. Empty one of the fields “after”."
            if len(chain) > len(after) + 1:
                break  # a cycle without this name, which its own names report
    return ""
