"""The lines of bodies and of the rows in them."""

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent

from tests.messages.lines import At
from tests.messages.rest.scenarios import (
    OUTPUT,
    imported,
    parsed,
    patched,
    posts,
    practised,
    rated,
    refuses,
    scores_form,
)

REST = {
    "The body is not one JSON": refuses("PATCH", "", [1]),
    "The body contains": posts("outputs/", []),
    "The body has … rows": posts("outputs/", [OUTPUT] * 1001),
    "This row repeats": At("row 2, system", posts("outputs/", [OUTPUT, OUTPUT])),
    "This row is already": At("row 1, system", posts("outputs/", [OUTPUT | {"sample": 0, "text": "Another."}])),
    "A row cannot add": At(
        "row 1, media", posts("outputs/", [{"system": "alpha", "prompt": "p000", "sample": 7, "media": "a.webp"}])
    ),
    "The name differs": At("row 1, name", posts("systems/", [{"name": "ALPHA"}])),
    "The study has no system “…”. Correct": At("row 1, system", posts("outputs/", [OUTPUT | {"system": "no"}])),
    "The study has no prompt": At("row 1, prompt", posts("outputs/", [OUTPUT | {"prompt": "no"}])),
    "A file of single": At("makes_pairs", imported(makes_pairs=True, makes_batches=True)),
    "An image has no text": At("row 1, media", posts("outputs/", [OUTPUT | {"media": "a.webp"}])),
    "An output has either": At("row 1, text", posts("outputs/", [OUTPUT | {"is_empty": True}])),
    "This resource has no such": At("colour", patched(colour="red")),
    "There is no such field": At("colour", posts("judge/sample/", {"colour": 1})),
    "There is no file. Send multipart/form-data with the table": At("file", posts("imports/", {})),
    "The code of a study": At("code", patched(code="00000000-0000-4000-8000-000000000000")),
    "The study has no assignment": At(
        "row 1, assignments", posts("exclusions/", {"assignments": ["0123"], "reason": "too_fast"})
    ),
    "There are no …. Send": At("scores", posts("metrics/", {"version": "1"})),
    "The form has no file": At("file", scores_form()),
    "The study has no … section": At("section", posts("test-questions/", {"damaged": 1})),
    "It is not clear": At("section", posts("test-questions/", {"damaged": 1, "section": 2}, make=rated)),
    "The … has another name": At("question", posts("test-questions/", {"damaged": 1, "question": "no"}, make=rated)),
    "has no output": At(
        "row 1, systems", posts("practice-items/", {"prompt": "p000", "systems": ["no"]}, make=practised)
    ),
    "This is not a JSON object. Send the other": At("settings", scores_form(b"x", settings="[")),
    "There are … more errors": posts(
        "metrics/", {"version": "1", "scores": [{"system": "no", "prompt": "no", "m": 1}] * 102}
    ),
    "The fields beside": scores_form(error=RequestDataTooBig()),
    "The form has too": scores_form(error=TooManyFieldsSent()),
    "The form is damaged": scores_form(error=UnicodeDecodeError("utf-8", b"", 0, 1, "")),
    "The body's charset": lambda: parsed("application/json; charset=utf-16"),
    "The body begins": posts("prompts/", b"\xef\xbb\xbf{}"),
    "The body … Correct": posts("prompts/", b"{'a'}"),
}
