"""The lines of fields, and of what a framework refuses."""

import gzip

from tests.messages.lines import At
from tests.messages.rest.scenarios import (
    OUTPUT,
    by_session,
    limited,
    patched,
    posts,
    prompted,
    refuses,
    sends,
    too_large,
)

REST = {
    "This field must not be null": At("text", prompted(text=None)),
    "This field is missing": At("key", posts("prompts/", {"text": "A prompt."})),
    "This is not a text": At("origins", posts("exports/", {"origins": [{}]})),
    "This text is empty": At("origins", posts("exports/", {"origins": [""]})),
    "This text has more than … characters": posts("exports/", {"origins": ["x" * 11]}),
    "This is not a JSON integer": At("target_n", patched(target_n="3")),
    "This number must be less": At("minutes", patched(minutes=9999)),
    "This number must be greater": At("revision", patched(revision=-1)),
    "This is not a decimal": At("reward", patched(reward="much")),
    "This amount must be greater": At("reward", patched(reward="-1")),
    "The number has more than … digits. Send": At("reward", patched(reward="1234567.50")),
    "The number has more than … decimals": At("reward", patched(reward="1.234")),
    "The number has more than … digits before": patched(reward="1234567"),
    "The number has more than 1000": patched(reward="1" * 1001),
    "This is not a JSON number": At("scale_low", posts("metrics/", {"version": "1", "scores": [], "scale_low": "1"})),
    "This is neither": At("replaces_excluded", patched(replaces_excluded="yes")),
    "is not a possible": At("coverage", patched(coverage="all")),
    "This is not a date": At("withdrawal_until", patched(withdrawal_until="soon")),
    "is not a UUID": At("code", patched(code="x")),
    "This is not a JSON object. Send an object with names": At("attributes", prompted(attributes=[1])),
    "This is not a JSON list": At("assignments", posts("exclusions/", {"assignments": 3})),
    "The list has fewer": At("assignments", posts("exclusions/", {"assignments": []})),
    "The list has more than … values": At("origins", posts("exports/", {"origins": ["live"] * 5})),
    "This is not a JSON object. Send an object with the fields": At("row 1", posts("prompts/", [3])),
    "The body is too": too_large,
    "The body is compressed": refuses("POST", "prompts/", gzip.compress(b"{}"), **{"Content-Encoding": "gzip"}),
    "Nothing was stored": posts("outputs/", [OUTPUT | {"system": "no"}]),
    "This resource does not accept": refuses("DELETE", "design/"),
    "The body is not JSON": sends("text/plain"),
    "There were too": limited,
    "A browser session": by_session,
}
