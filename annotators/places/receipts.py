"""Receipts: what an annotator shows to be paid. The same for ever, made from the code, guessable by nobody."""

from annotators.models.crypto import keyed_hash

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def receipt_of(assignment_code: str) -> str:
    """Ten characters in two groups, easy to copy by hand: no 0, 1, I, O."""
    number = int(keyed_hash("receipt", assignment_code)[:20], 16)
    characters = ""
    for _ in range(10):
        number, rest = divmod(number, 32)
        characters += ALPHABET[rest]
    return f"{characters[:5]}-{characters[5:]}"


def normalize_receipt(receipt: str) -> str:
    """A receipt as somebody typed it, in the one way that can be compared: letters of any size, with or without the dash."""
    return "".join(c for c in receipt.upper() if c.isalnum())


def looks_like_receipt(typed: str) -> bool:
    return len(normalize_receipt(typed)) == 10 and set(normalize_receipt(typed)) <= set(ALPHABET)
