"""Chats and preferences as trainers read them: ``messages``, or ``chosen`` and ``rejected``, each a text or a list of messages."""

from collections.abc import Iterator, Mapping
from typing import Any

from .messages import conversation, is_messages, last_text

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
