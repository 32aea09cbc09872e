"""The page of environment variables: names and defaults from the code, descriptions from environment.toml."""

import ast
from functools import cache

from .markdown import PACKAGES, ROOT, build_page, inline_code, load_descriptions, markdown_table

VARIABLE_DESCRIPTIONS: dict[str, dict[str, dict[str, str]]] = load_descriptions("environment")


@cache
def environment_variable_defaults() -> dict[str, str]:
    """Return the environment variables that the packages read, each with its default, or '' if the code has none."""
    defaults: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            # Most files read no variable, and parsing them all takes seconds.
            if not any(word in text for word in ("env.", "environ", "get_or_create_secret")):
                continue
            for node in ast.walk(ast.parse(text)):
                if (name := _variable(node)) and not defaults.get(name):
                    defaults[name] = _default(node)
    return defaults


def _variable(node: ast.AST) -> str:
    """Return the variable that a call or ``os.environ[...]`` reads, or '' for other nodes."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        key: ast.expr | None = node.slice
    elif isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        is_reading = (
            called.startswith("env.")
            and called != "env.LOOPBACK"
            or called == "get_or_create_secret"
            or called.startswith("os.environ.")
        )
        key = node.args[0] if is_reading else None
    else:
        return ""
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isupper():
        return key.value
    return ""


def _default(node: ast.AST) -> str:
    if (
        not isinstance(node, ast.Call)
        or not ast.unparse(node.func).startswith("env.")
        or ast.unparse(node.func) == "env.url"
    ):
        return ""
    return _value_in_words(node.args[1]) if len(node.args) > 1 else ""


def _value_in_words(node: ast.AST) -> str:
    if isinstance(node, ast.IfExp) and ast.unparse(node.test).strip("_").lower().endswith("embedded"):
        return f"{_value_in_words(node.body)} when embedded, {_value_in_words(node.orelse)} when deployed"
    if isinstance(node, ast.Constant):
        return f"`{str(node.value).lower() if isinstance(node.value, bool) else str(node.value)}`"
    return "`true` if SITE_URL is https" if ast.unparse(node) == "SECURE" else ""


def environment_page() -> str:
    defaults = environment_variable_defaults()
    parts = []
    for words, variables in VARIABLE_DESCRIPTIONS.items():
        rows = [
            (inline_code(name), description.get("default") or defaults.get(name, ""), description["meaning"])
            for name, description in variables.items()
        ]
        parts += [f"## {words}", markdown_table(("Variable", "Default", "Meaning"), rows)]
    return build_page(
        "Environment variables",
        "heval is configured only by environment variables. If a value is not valid, heval does not start, and a message names the variable.",
        "Write true as `true`, `yes`, `on` or `1`, and false as `false`, `no`, `off` or `0`. Most variables can also come from a "
        "file: `SECRET_KEY_FILE=/run/secrets/key` names a file that contains the value. The exceptions are HEVAL_HOME and XDG_DATA_HOME.",
        *parts,
    )
