"""The lines of bodies and of the rows in them."""

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent

from tests.messages.rest.scenarios import (
    API,
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

ADDED = "Correct the name, or add the system first"
LINES = {
    f"{API}:require_json_object": [
        ("The body is not one JSON object", "Send one object with the fields", refuses("PATCH", "", [1])),
    ],
    f"{API}:_checked": [
        ("The body contains no rows", "Send one object, or a list of 1 to 1,000 objects", posts("outputs/", [])),
        (
            "The body has 1,001 rows",
            "Send at most 1,000 per request",
            posts("outputs/", [OUTPUT] * 1001),
        ),
    ],
    f"{API}:_refuse_repeats": [
        ("row 2, system: This row repeats row 1", "Remove one of the two", posts("outputs/", [OUTPUT, OUTPUT])),
    ],
    f"{API}:_refuse_changes": [
        (
            "row 1, system: This row is already stored with a different text",
            "Leave this row out, or change it in the admin",
            posts("outputs/", [OUTPUT | {"sample": 0, "text": "Another."}]),
        ),
    ],
    f"{API}:_refuse_new_images": [
        (
            "row 1, media: A row cannot add an image",
            "Send a zip with the images to imports/",
            posts("outputs/", [{"system": "alpha", "prompt": "p000", "sample": 7, "media": "a.webp"}]),
        ),
    ],
    f"{API}:prepare": [
        (
            "row 1, name: The name differs from “alpha” only in case",
            "Choose a clearly different name",
            posts("systems/", [{"name": "ALPHA"}]),
        ),
        ("row 1, system: The study has no system “no”", ADDED, posts("outputs/", [OUTPUT | {"system": "no"}])),
        (
            "row 1, prompt: The study has no prompt “no”",
            "Correct the key, or add the prompt first",
            posts("outputs/", [OUTPUT | {"prompt": "no"}]),
        ),
    ],
    f"{API}:validate": [
        (
            "makes_pairs: A file of single texts cannot contain ready-made batches",
            "Send one of the two",
            imported(makes_pairs=True, makes_batches=True),
        ),
        (
            "row 1, media: An image has no text and is not empty",
            "Remove text and is_empty",
            posts("outputs/", [OUTPUT | {"media": "a.webp"}]),
        ),
        (
            "row 1, text: An output has either a text or is_empty: true",
            "Send exactly one",
            posts("outputs/", [OUTPUT | {"is_empty": True}]),
        ),
    ],
    f"{API}:to_internal_value": [
        ("colour: This resource has no such field", "Remove it", patched(colour="red")),
    ],
    f"{API}:post": [
        ("colour: There is no such field", "Leave it out", posts("judge/sample/", {"colour": 1})),
        (
            "file: There is no file",
            "Send multipart/form-data with the table or the zip",
            posts("imports/", {}),
        ),
    ],
    f"{API}:patch": [
        (
            "code: The code of a study cannot be changed",
            "Leave this field out",
            patched(code="00000000-0000-4000-8000-000000000000"),
        ),
    ],
    f"{API}:_assignments_by_name": [
        (
            "row 1, assignments: The study has no assignment “0123”",
            "Copy the name from the list of assignments",
            posts("exclusions/", {"assignments": ["0123"], "reason": "too_fast"}),
        ),
    ],
    f"{API}:read_upload": [
        ("scores: There are no scores", "Send a list with one object per output", posts("metrics/", {"version": "1"})),
        ("file: The form has no file", "Send the scores as a file named “file”", scores_form()),
    ],
    f"{API}:find_section": [
        ("section: The study has no live section", "Add one in the admin", posts("test-questions/", {"damaged": 1})),
        (
            "section: It is not clear which live section is meant",
            "Send one of these positions: 1",
            posts("test-questions/", {"damaged": 1, "section": 2}, make=rated),
        ),
    ],
    f"{API}:_find": [
        (
            "question: The question has another name",
            "Send one of these: overall",
            posts("test-questions/", {"damaged": 1, "question": "no"}, make=rated),
        ),
    ],
    f"{API}:_outputs": [
        (
            "row 1, systems: “no” has no output for the prompt “p000”",
            "Correct the name or the prompt",
            posts("practice-items/", {"prompt": "p000", "systems": ["no"]}, make=practised),
        ),
    ],
    f"{API}:read_settings": [
        ("settings: This is not a JSON object", "as one object", scores_form(b"x", settings="[")),
    ],
    f"{API}:row_errors": [
        (
            "There are 3 more errors",
            "Correct these first",
            posts("metrics/", {"version": "1", "scores": [{"system": "no", "prompt": "no", "m": 1}] * 102}),
        ),
    ],
    f"{API}:parse": [
        ("have more than 32 MB", "Shorten them", scores_form(error=RequestDataTooBig())),
        ("too many fields", "Send only the fields of this resource", scores_form(error=TooManyFieldsSent())),
        (
            "damaged or is not UTF-8",
            "Send multipart/form-data as UTF-8",
            scores_form(error=UnicodeDecodeError("utf-8", b"", 0, 1, "")),
        ),
        (
            "The body's charset is not UTF-8",
            "Send the body as UTF-8",
            lambda: parsed("application/json; charset=utf-16"),
        ),
        ("begins with a byte order mark", "Send UTF-8 without it", posts("prompts/", b"\xef\xbb\xbf{}")),
        ("The body is not JSON at character 2", "Correct it, then send the request again", posts("prompts/", b"{'a'}")),
    ],
}
