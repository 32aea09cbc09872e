"""Names of submissions that look alike."""

import re
import unicodedata
from hashlib import sha256
from typing import Any

from django.db import models

from studies.stimuli.texts import name_key

# Letters beside the Latin ones that they look like. Capitals of Greek come first: their small letters look like others.
_GREEK_CAPITALS = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ", "ABEZHIKMNOPTYXCJ")
_SMALL = str.maketrans(
    "аьвсԁеғԍһнієїјкӏмопрԛгѕтуүѵԝхαβϲεικνηορτυωχγıɑɡɩ", "abbcdefghhieijklmonpqrstyyvwxabceikvnoptuwxyiagi"
)
# Marks and fillers that nobody sees, other dashes and quotation marks, and digits and letters that are alike in most typefaces.
_INVISIBLE = re.compile("[\u034f\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_SIGNS = str.maketrans("\u115f\u1160\u2800\u3164\uffa0−‘’ʼ′“”", "     -''''\"\"")
_TWINS = str.maketrans("01i|", "olll")
# How pages call a hidden submission, and one that was published under a name that another one had.
_RESERVED = re.compile(r"\bsubmission\W*\d")


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name).translate(_SIGNS)).translate(
        _SIGNS | _GREEK_CAPITALS
    )
    small = name_key(plain).translate(_SMALL)
    return "".join("-" if unicodedata.category(sign) == "Pd" else sign for sign in small)


def is_reserved(name: str) -> bool:
    """Return whether a name looks like those that pages give to hidden submissions."""
    return bool(_RESERVED.search(_folded(name)))


def numbered_name(submission: Any) -> str:
    """Return a submission's name with its number, which no other can have."""
    return f"{submission.name[:70]} (submission {submission.number})"


def lookalike_key(name: str) -> str:
    """Return the SHA-256 of what names have in common that a reader takes for one another.

    >>> lookalike_key("Secret  Model 9") == lookalike_key("ѕecret mΟdel 9") != lookalike_key("Secret Model 8")
    True
    """
    return sha256(_folded(name).translate(_TWINS).encode()).hexdigest()


class LookalikeKeyField(models.CharField):
    """The key of a row's name, computed when the row is stored."""

    def __init__(self, **options: Any):
        super().__init__(**{"max_length": 64, "editable": False} | options)

    def pre_save(self, instance: models.Model, add: bool) -> Any:
        if add:
            setattr(instance, self.attname, lookalike_key(instance.name))  # type: ignore[attr-defined]  # of models with a name
        return super().pre_save(instance, add)
