"""Chats and preferences as trainers read them: ``messages``, or ``chosen`` and ``rejected``, each a text or a list of messages."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

NAME = "chats: the last answer is the output, and what came before it is the prompt"
LISTS = ("messages", "conversation", "conversations", "chosen", "rejected", "prompt")


def is_row(values: Mapping[str, Any]) -> bool:
    return any(is_messages(values.get(name)) for name in LISTS)


def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    row = {name: value for name, value in values.items() if not is_messages(value)}
    asked: list[Mapping[str, Any]] = next(
        (
            values[name]
            for name in ("prompt", "messages", "conversation", "conversations", "chosen")
            if is_messages(values.get(name))
        ),
        [],
    )
    if not isinstance(row.get("prompt"), str):
        row["prompt"] = conversation(asked)
    for name in LISTS[:-1]:
        if is_messages(values.get(name)):
            row[name if name in ("chosen", "rejected") else "output"] = last_text(values[name], "assistant")
    yield row


# Texts of messages, as the interfaces of language models write them. Other formats use these functions, too.


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
