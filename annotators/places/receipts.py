"""Receipts: what an annotator shows to be paid. The same for ever, made from the code, guessable by nobody."""

from annotators.models.crypto import keyed

ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"


def receipt_of(code: str) -> str:
    """Ten characters in two groups, easy to copy by hand: no 0, 1, I, O."""
    number = int(keyed("receipt", code)[:20], 16)
    characters = ""
    for _ in range(10):
        number, rest = divmod(number, 32)
        characters += ALPHABET[rest]
    return f"{characters[:5]}-{characters[5:]}"


def plain(receipt: str) -> str:
    """A receipt as somebody typed it, in the one way that can be compared: letters of any size, with or without the dash."""
    return "".join(c for c in receipt.upper() if c.isalnum())


def is_like_one(typed: str) -> bool:
    return len(plain(typed)) == 10 and set(plain(typed)) <= set(ALPHABET)
