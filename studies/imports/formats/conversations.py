"""Conversations with models: chats and preferences of trainers, answers of MT-Bench, and votes between two models."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeGuard

from studies.stimuli.lines import RowRefused, UnreadableFile
from studies.stimuli.texts import key_from_text

LISTS = ("messages", "conversation", "conversations", "chosen", "rejected", "prompt")
TIE = {"choice": "tie"}
_VOTER = re.compile(r"session|user|voter|person|annotator|rater", re.IGNORECASE)


class Chats:
    """``messages``, or ``chosen`` and ``rejected``, each a text or a list of messages."""

    NAME = "chats: the last answer is the output, and what came before it is the prompt"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return any(is_messages(values.get(name)) for name in LISTS)

    @staticmethod
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


class MtBench:
    """Questions and answers of MT-Bench (question.jsonl, MODEL.jsonl): turns of a conversation with one model."""

    NAME = "questions or answers of MT-Bench"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return "question_id" in values and (
            _is_turns(values.get("turns")) or ("model_id" in values and bool(MtBench.choices(values)))
        )

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        key = {"prompt_key": str(values["question_id"])}
        if _is_turns(values.get("turns")):
            yield {**key, "prompt_text": joined(values["turns"]), "domain": str(values.get("category") or "")[:50]}
        for number, choice in enumerate(MtBench.choices(values)):
            yield {**key, "system": values["model_id"], "sample": number, "text": joined(choice["turns"])}

    @staticmethod
    def choices(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        found = values.get("choices")
        return (
            [one for one in found if isinstance(one, Mapping) and _is_turns(one.get("turns"))]
            if isinstance(found, list)
            else []
        )


class Votes:
    """Votes of Chatbot Arena, and the human judgements of MT-Bench. A row has a vote, and mostly the two conversations."""

    NAME = "votes between two models; “both bad” was read as a tie"
    SIDES = ("model_a", "model_b")
    # Fields of Arena and MT-Bench. Without one, “model_a” and “winner” are columns of any table.
    OWN = frozenset(
        {"judge", "judge_hash", "conversation_a", "response_a", "turn", "evaluation_session_id", "winner_model_a"}
    )
    TIES = ("tie", "tie (bothbad)", "both_bad", "bothbad", "both bad", "tie (both bad)")

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        if _is_by_model(values):
            return True
        if Votes.OWN.isdisjoint(values) or not all(isinstance(values.get(side), str) for side in Votes.SIDES):
            return False
        is_flagged = "winner_model_a" in values and "winner_model_b" in values
        return is_flagged or values.get("winner") in (*Votes.SIDES, *Votes.TIES)

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        _refuse_model_judge(values)
        for side in Votes.SIDES:
            asked, said = _turns(values, side[-1])
            key = _vote_key(values)
            row = {"prompt_key": key, "prompt_text": joined(asked), "system": values[side], "text": joined(said)}
            yield from once(row, state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        _refuse_model_judge(values)
        a, b = (values[side] for side in Votes.SIDES)
        judge = values.get("judge") or values.get("judge_hash")
        # Columns that may say who gave a vote: a person decides.
        others = {name: cell for name, cell in values.items() if _VOTER.search(name) and isinstance(cell, str | int)}
        answer = {
            **({"annotator": judge} if judge else others),
            "prompt_key": _vote_key(values),
            "shown:A": a,
            "shown:B": b,
            "time": _time(values),
        }
        # In the judgements of MT-Bench the turn says which answer was judged, elsewhere how long the conversation was.
        if "turn" in values and not {"tstamp", "timestamp", "anony"} & values.keys():
            turn = f"turn_{values['turn']}"
            answer["question"] = turn if turn != "turn_1" or turn in state["questions"] else ""
        flags = [
            name for name in (*Votes.SIDES, "tie") if str(values.get(f"winner_{name}")) in ("1", "1.0", "True", "true")
        ]
        winner = values.get("winner") or (flags[0] if len(flags) == 1 else "")
        chosen = {"model_a": a, "model_b": b, a: a, b: b}.get(winner)
        if chosen is None and winner not in Votes.TIES:
            raise RowRefused("winner", f"must be model_a, model_b, tie or both_bad, not “{str(winner)[:40]}”.")
        yield answer | ({"chosen": chosen} if chosen else TIE)


class AlpacaAnnotations:
    """Annotations of AlpacaEval: which of two outputs is preferred, 1 or 2. 0 and 1.5 mean neither."""

    NAME = "annotations of AlpacaEval"

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return {"instruction", "output_1", "output_2", "preference"} <= values.keys()

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        text = _instruction(values)
        for number in (1, 2):
            row = {"prompt_key": key_from_text(text), "prompt_text": text, "system": _generator(values, number)}
            yield from once(row | {"text": values[f"output_{number}"]}, state)

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        found = values["preference"]
        if found in (None, ""):
            state["left_out"] += 1
            return
        choices = {1.0: {"chosen": _generator(values, 1)}, 2.0: {"chosen": _generator(values, 2)}, 0.0: TIE, 1.5: TIE}
        if (answer := choices.get(float(found))) is None:
            raise RowRefused("preference", f"{found} is the probability of a language model, not a person's choice.")
        annotator = values.get("annotator_index", values.get("annotator"))
        yield answer | {
            "annotator": "" if annotator is None else str(annotator),
            "prompt_key": key_from_text(_instruction(values)),
            "shown:A": _generator(values, 1),
            "shown:B": _generator(values, 2),
        }


def once(row: dict[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row of an output at its first occurrence. Votes about one output repeat its text."""
    seen = state.setdefault("seen", {})
    place = (row["prompt_key"], row["system"])
    if seen.setdefault(place, hash(row["text"])) != hash(row["text"]):
        raise RowRefused(
            "text", f"“{row['system']}” has another text for this prompt in an earlier row. Correct one of them."
        )
    if place not in state.setdefault("written", set()):
        state["written"].add(place)
        yield row


def _instruction(values: Mapping[str, Any]) -> str:
    more = values.get("input")
    return f"{values['instruction']}\n\n{more}" if more else str(values["instruction"])


def _generator(values: Mapping[str, Any], number: int) -> str:
    if not (name := values.get(f"generator_{number}")):
        raise RowRefused(f"generator_{number}", "names no system. Add the names of the two systems to the file.")
    return str(name)


def _is_by_model(values: Mapping[str, Any]) -> bool:
    return "question_id" in values and ("g1_winner" in values or isinstance(values.get("judge"), list))


def _refuse_model_judge(values: Mapping[str, Any]) -> None:
    if _is_by_model(values):
        raise UnreadableFile(
            None,
            "The file holds judgements of MT-Bench by a language model. Compare them with people on the page “Judges”.",
        )


def _vote_key(values: Mapping[str, Any]) -> str:
    return str(values.get("question_id") or values.get("id") or "")


def _time(values: Mapping[str, Any]) -> str:
    found = values.get("tstamp", values.get("timestamp"))
    if isinstance(found, int | float) and not isinstance(found, bool):
        return datetime.fromtimestamp(found, UTC).isoformat()
    return str(found or "")


def _turns(values: Mapping[str, Any], side: str) -> tuple[list[str], list[str]]:
    """Return what the person and the model of a side said, turn by turn: lists of messages, or lists of texts written as JSON."""
    if f"conversation_{side}" in values:
        found = _loaded(values[f"conversation_{side}"])
        return tuple(
            [text_of(one["content"]) for one in found if one["role"] == role] for role in ("user", "assistant")
        )  # type: ignore[return-value]  # two roles
    if "prompt" in values and f"response_{side}" in values:
        return tuple([str(one or "") for one in _loaded(values[name])] for name in ("prompt", f"response_{side}"))  # type: ignore[return-value]  # two names
    raise UnreadableFile(
        None,
        "The votes have no texts: no column conversation_a. Import the texts from another file, and these votes as answers.",
    )


def _loaded(found: Any) -> list[Any]:
    if isinstance(found, str):
        found = json.loads(found) if found.lstrip().startswith("[") else [found]
    if not isinstance(found, list):
        raise TypeError(found)
    return found


def _is_turns(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def joined(turns: Sequence[str]) -> str:
    return (
        turns[0] if len(turns) == 1 else "\n\n".join(f"Turn {number}: {turn}" for number, turn in enumerate(turns, 1))
    )


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
