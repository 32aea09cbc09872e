"""Receipts: what an annotator shows to be paid. The same for ever, made from the code, guessable by nobody."""

from .channels import keyed


def receipt_of(code: str) -> str:
    """Ten characters in two groups, easy to copy by hand: no 0, 1, I, O."""
    number = int(keyed("receipt", code)[:20], 16)
    alphabet = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
    characters = ""
    for _ in range(10):
        number, rest = divmod(number, 32)
        characters += alphabet[rest]
    return f"{characters[:5]}-{characters[5:]}"
