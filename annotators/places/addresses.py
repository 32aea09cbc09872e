"""The addresses of a person's pages: their personal one, and one that shows no stored answers.

The second one is for people who come again by a link that anybody can write. It is an encrypted code, so nothing is stored
for it, and the personal address cannot be found from it.
"""

from secrets import token_urlsafe

from annotators.models import Assignment, new_code
from annotators.models.crypto import Purpose, decrypt, encrypt, keyed_hash

MAX_CODE_LENGTH = 32  # a longer one is encrypted


def new_limited_address(assignment: Assignment) -> str:
    return encrypt(Purpose.ADDRESS, assignment.code).decode().rstrip("=")


def assignment_code(address: str) -> str:
    """Return the code of the assignment that an address of its pages names. Raises LookupError for a forged address."""
    from cryptography.fernet import InvalidToken  # imported late, because most pages do not need it

    if len(address) <= MAX_CODE_LENGTH:
        return address
    try:
        return decrypt(Purpose.ADDRESS, (address + "=" * (-len(address) % 4)).encode())
    except (InvalidToken, ValueError):
        raise LookupError(address) from None


def new_form_token() -> str:
    """Return a secret for the form of an entry page, by which the form's second press is known."""
    return token_urlsafe(16)


def code_for_form(recruitment_key: str, person: str, form_token: str) -> str:
    """Return the code of the place that this form claims: the same for each press, and known only to who saw the form."""
    return keyed_hash("place", recruitment_key, person, form_token)[:32] if form_token else new_code()
