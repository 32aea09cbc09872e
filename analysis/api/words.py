"""What the OpenAPI description says of each field, address and body: a sentence and an example.

Sentences come from ``help_text`` and docstrings, or else from words.toml. Examples come from the types.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
BY_FORMAT = {
    "uuid": "16fd2706-8baf-433b-82eb-8c7fada847da",
    "date-time": "2026-12-31T18:00:00Z",
    "date": "2026-12-31",
    "uri": "https://eval.example.org/",
    "decimal": "1.50",
    "binary": "",
}


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


def add_words(result: Schema, **options: Any) -> Schema:
    """Complete a description (a hook of drf-spectacular)."""
    components = result["components"]["schemas"]
    for name, schema in components.items():
        _describe(name, schema)
    for schema in components.values():
        for field, one in schema.get("properties", {}).items():
            one.setdefault("example", _example(field, one, components))
    for operation in _operations(result):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path":
                sentence, example = _words()["paths"][parameter["name"]]
                parameter |= {"description": sentence, "example": example}
            else:
                parameter.setdefault("example", _example(parameter["name"], parameter["schema"], components))
        for code, response in operation["responses"].items():
            if code >= "400":
                result["components"].setdefault("responses", {})[f"Problem{code}"] = response
                operation["responses"][code] = {"$ref": f"#/components/responses/Problem{code}"}
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in (content for body in bodies for content in body.get("content", {}).values()):
            if content.get("schema") and "example" not in content:
                content["example"] = _example("", content["schema"], components)
    return result


def _operations(result: Schema) -> Iterator[Schema]:
    for methods in result["paths"].values():
        yield from methods.values()


def _describe(component: str, schema: Schema) -> None:
    """Give each field its sentence. An answer always has all its fields, so they are required."""
    base = component.removeprefix("Patched")
    names = [base, base.removesuffix("Request"), base.removesuffix("RequestRequest")]
    words, fields = _words()["fields"], schema.get("properties", {})
    for field, one in fields.items():
        found = (words[key] for key in (*(f"{name}.{field}" for name in names), field) if key in words)
        if "description" not in one or one["description"].startswith("* `"):
            values = f"\n\n{one['description']}" if "description" in one else ""
            if sentence := next(found, ""):
                one["description"] = sentence + values
        one.pop("x-spec-enum-id", None)
        if {} in one.get("oneOf", ()):  # any value, so also null
            del one["oneOf"]
        if one.get("readOnly"):  # forms check what is sent, and a stored text may be empty
            one.pop("pattern", None)
    if not component.endswith("Request") and fields:
        left_out = _words()["optional"].get(component, ())
        schema["required"] = [name for name in fields if name not in left_out]


def _example(name: str, schema: Schema, components: dict[str, Schema]) -> Any:
    """Return a value of this schema."""
    if "example" in schema:
        return schema["example"]
    if "$ref" in schema:
        target = components[schema["$ref"].rpartition("/")[2]]
        return _example(name, target, components)
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    for key in ("allOf", "oneOf", "anyOf"):
        if schema.get(key):
            return _example(name, schema[key][0], components)
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else next(one for one in kinds if one != "null")
    return _of_kind(kind, name, schema, components)


def _of_kind(kind: str, name: str, schema: Schema, components: dict[str, Schema]) -> Any:
    if kind == "object":
        shared = schema.get("additionalProperties")
        if "properties" not in schema:
            return {"name": _example("", shared, components)} if isinstance(shared, dict) and shared else {}
        return {field: _example(field, one, components) for field, one in schema["properties"].items()}
    if kind == "array":
        item = _example(name.removesuffix("s"), schema.get("items", {}), components)
        return [item] * max(1, schema.get("minItems", 1))
    if kind == "boolean":
        return False
    if kind in ("integer", "number"):
        least: Any = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        value: Any = max(least, 1 if kind == "integer" else 0.5)
        return min(value, schema.get("maximum", value))
    known = _words()["examples"].get(name.removesuffix("_sha256"), "text")
    return BY_FORMAT.get(schema.get("format", ""), known)
