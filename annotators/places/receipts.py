"""Receipts: short codes that annotators show to be paid.

A receipt is a keyed hash of the code: fixed and not guessable.
"""

from annotators.models.crypto import keyed_hash

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def compute_receipt(assignment_code: str) -> str:
    """Return the receipt: ten characters in two groups, easy to copy by hand, without 0, 1, I and O."""
    number = int(keyed_hash("receipt", assignment_code)[:20], 16)
    characters = ""
    for _ in range(10):
        number, rest = divmod(number, 32)
        characters += ALPHABET[rest]
    return f"{characters[:5]}-{characters[5:]}"


def normalize_receipt(receipt: str) -> str:
    """Return a typed receipt in the form used for comparison: upper case, without dash and spaces."""
    return "".join(character for character in receipt.upper() if character.isalnum())


def looks_like_receipt(text: str) -> bool:
    return len(normalize_receipt(text)) == 10 and set(normalize_receipt(text)) <= set(ALPHABET)
