"""The lines of fields, and of what a framework refuses."""

import gzip

from tests.messages.rest.scenarios import (
    API,
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

LINES = {
    f"{API}:": [
        ("text: This field must not be null", "Send a value", prompted(text=None)),
        ("key: This field is missing", "Send it", posts("prompts/", {"text": "A prompt."})),
        ("origins: This is not a text", "Send a text", posts("exports/", {"origins": [{}]})),
        ("origins: This text is empty", "Send at least one", posts("exports/", {"origins": [""]})),
        ("more than 10 characters", "Shorten it", posts("exports/", {"origins": ["x" * 11]})),
        ("target_n: This is not a JSON integer", "Send an integer without", patched(target_n="3")),
        ("minutes: This number must be less than or equal to 1440", "Send a smaller one", patched(minutes=9999)),
        ("revision: This number must be greater than or equal to 0", "Send a larger one", patched(revision=-1)),
        ("reward: This is not a decimal number", "for example 4.50", patched(reward="much")),
        ("reward: This amount must be greater than or equal to 0", "Send a larger one", patched(reward="-1")),
        ("reward: The number has more than 7 digits", "Send a shorter one", patched(reward="1234567.50")),
        ("reward: The number has more than 2 decimals", "Round it", patched(reward="1.234")),
        ("more than 5 digits before the point", "Send a smaller one", patched(reward="1234567")),
        ("more than 1000 characters", "Send a shorter one", patched(reward="1" * 1001)),
        (
            "scale_low: This is not a JSON number",
            "Send a finite number",
            posts("metrics/", {"version": "1", "scores": [], "scale_low": "1"}),
        ),
        ("replaces_excluded: This is neither true nor false", "Send one of them", patched(replaces_excluded="yes")),
        ("coverage: “all” is not a possible value", "Send one of balanced", patched(coverage="all")),
        ("withdrawal_until: This is not a date", "for example 2026-12-31", patched(withdrawal_until="soon")),
        ("code: “x” is not a UUID", "or leave the field out", patched(code="x")),
        ("attributes: This is not a JSON object", "Send an object with names", prompted(attributes=[1])),
        ("assignments: This is not a JSON list", "in square brackets", posts("exclusions/", {"assignments": 3})),
        ("assignments: The list has fewer than 1", "Send more", posts("exclusions/", {"assignments": []})),
        ("origins: The list has more than 4 values", "Send fewer", posts("exports/", {"origins": ["live"] * 5})),
        ("row 1, None: This is not a JSON object", "with the fields of this resource", posts("prompts/", [3])),
        ("The body is too large for one request", "Split it into several requests", too_large),
        (
            "The body is compressed",
            "Send it without compression",
            refuses("POST", "prompts/", gzip.compress(b"{}"), **{"Content-Encoding": "gzip"}),
        ),
        ("Nothing was stored", "Correct what “errors” lists", posts("outputs/", [OUTPUT | {"system": "no"}])),
        ("does not accept this method", "docs/ lists the methods", refuses("DELETE")),
        ("The body is not JSON", "with the header Content-Type: application/json", sends("text/plain")),
        ("too many requests in this minute", "after the seconds in Retry-After", limited),
        ("needs a CSRF token", "Send the header Authorization: Token <token> instead", by_session),
    ],
}
