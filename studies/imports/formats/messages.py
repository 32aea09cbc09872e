"""Texts of chat messages, as the interfaces of language models write them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def text_of(content: Any) -> str:
    """Return the text of a message's content: a text, or a list of parts of which some are texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return text_of(content.get("text", content.get("content", "")))
    if isinstance(content, Sequence):
        return "\n".join(filter(None, (text_of(part) for part in content)))
    return ""


def is_messages(value: Any) -> TypeGuard[list[Mapping[str, Any]]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, Mapping) and "content" in one and "role" in one for one in value)
    )


def last_text(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    """Return the last text of a role, or ''."""
    return next((text_of(one["content"]) for one in reversed(messages) if one["role"] == role), "")


def conversation(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return what comes before the last answer: one text as it is, several with who says them. The system's instructions are left out."""
    said = [one for one in messages if one["role"] in ("user", "assistant")]
    if said and said[-1]["role"] == "assistant":
        said.pop()
    if len(said) == 1:
        return text_of(said[0]["content"])
    return "\n\n".join(f"{one['role'].capitalize()}: {text_of(one['content'])}" for one in said)
