"""The OpenAPI description says everything of every field and operation, and version 1 keeps what it has promised."""

import json
import os
from pathlib import Path

import pytest

from analysis.api.schema import describe_api
from analysis.api.words import _words

STORED = Path(__file__).parents[2] / "golden" / "rest_v1.json"


@pytest.fixture(scope="module")
def described():
    return describe_api()


def operations(described):
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path.removeprefix('/api/v1/')}", operation


def fields(described):
    for component, schema in described["components"]["schemas"].items():
        for name, field in schema.get("properties", {}).items():
            yield component, name, field


def test_every_field_has_a_sentence_and_an_example(described):
    found = list(fields(described))
    assert len(found) > 1300
    missing = [
        (component, name)
        for component, name, field in found
        if field.get("description", "* `").startswith("* `") or "example" not in field
    ]
    assert not missing


def test_every_operation_has_a_sentence_examples_and_errors(described):
    assert described["openapi"].startswith("3.1") and described["servers"]
    for name, operation in operations(described):
        assert operation["summary"] and operation["description"], name
        for parameter in operation.get("parameters", ()):
            assert parameter["description"] and "example" in parameter, (name, parameter["name"])
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        assert all("example" in content for body in bodies for content in body.get("content", {}).values()), name
        errors = {"400", "401", "403", "404", "405", "429", "503"}
        assert errors <= set(operation["responses"]), name
    assert set(described["components"]["responses"]) > {"Problem400", "Problem412", "Problem422"}


def test_only_public_boards_are_read_without_credentials(described):
    public = {name for name, operation in operations(described) if {} in operation["security"]}
    assert public and all(name.startswith("GET boards/") for name in public)


def test_an_answer_has_all_fields_that_are_not_marked_as_optional(described):
    optional = _words()["optional"]
    for name, schema in described["components"]["schemas"].items():
        if not name.endswith("Request"):
            left = set(schema.get("properties", ())) - set(schema.get("required", ()))
            assert left == set(optional.get(name, ())), name


def test_no_sentence_is_left_that_no_field_uses(described):
    sentences = {field["description"].partition("\n\n* `")[0] for _, _, field in fields(described)}
    assert set(_words()["fields"].values()) <= sentences
    parts = {
        parameter["name"]
        for _, operation in operations(described)
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path"
    }
    assert set(_words()["paths"]) == parts


# What version 1 promises.


def promises(described):
    """Return what a client may rely on: operations with their parameters and bodies, and the fields of bodies with their types."""

    def kind(schema):
        kinds = schema.get("type", schema.get("$ref", schema.get("allOf", schema.get("oneOf", ""))))
        return kinds if isinstance(kinds, str) else json.dumps(kinds, sort_keys=True)

    def bodies(content):
        return sorted(f"{media}: {kind(one.get('schema', {}))}" for media, one in content.get("content", {}).items())

    return {
        "operations": {
            name: {
                "parameters": {one["name"]: bool(one.get("required")) for one in operation.get("parameters", ())},
                "request": bodies(operation.get("requestBody", {})),
                "answers": {
                    code: bodies(answer) for code, answer in operation["responses"].items() if code.startswith("2")
                },
            }
            for name, operation in operations(described)
        },
        "fields": {
            component: {name: kind(field) for name, field in schema.get("properties", {}).items()}
            for component, schema in described["components"]["schemas"].items()
        },
        "required": {
            component: schema.get("required", []) for component, schema in described["components"]["schemas"].items()
        },
    }


def test_version_1_keeps_what_it_has_promised(described):
    now = json.loads(json.dumps(promises(described)))
    if os.environ.get("UPDATE_REST"):  # only before 0.1.0
        STORED.write_text(json.dumps(now, sort_keys=True) + "\n", encoding="utf-8")
    then = json.loads(STORED.read_text(encoding="utf-8"))
    for name, operation in then["operations"].items():
        kept = now["operations"].get(name)
        assert kept, f"{name} is gone"
        assert operation["request"] == kept["request"] and operation["answers"].items() <= kept["answers"].items(), name
        assert set(operation["parameters"]) <= set(kept["parameters"]), name
        new = set(kept["parameters"]) - set(operation["parameters"])
        assert not any(kept["parameters"][parameter] for parameter in new), f"{name} needs a new parameter"
    for component, named in then["fields"].items():
        assert named.items() <= now["fields"].get(component, {}).items(), component
        is_request = component.endswith("Request")
        before, after = set(then["required"][component]), set(now["required"][component])
        assert after <= before if is_request else before <= after, component
