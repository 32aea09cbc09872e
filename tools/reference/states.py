"""The page of states of studies and assignments, with descriptions from states.toml."""

from annotators.models import Assignment
from studies.models import Study

from .markdown import as_sentence, build_page, inline_code, load_descriptions, markdown_table


def states_page() -> str:
    words = load_descriptions("states")
    trust = [(inline_code(key), as_sentence(label.partition(": ")[2])) for key, label in Assignment.Trust.choices]
    stages = [(stage["name"], stage["stored"], stage["meaning"]) for stage in words["stages"]]
    return build_page(
        "States of a study and of an assignment",
        "[The life of a study](../explanation/life-of-a-study.md) explains how one state leads to the next.",
        "## A study",
        markdown_table(
            ("State", "What holds"), [(inline_code(state), words["study"][state]) for state in Study.State.values]
        ),
        "A draft or a closed study can be archived. This removes it from the list and can be undone.",
        "## An assignment",
        "The stage of an assignment is not stored; it follows from its times.",
        markdown_table(("Stage", "How it is stored", "What it means"), stages),
        "## Why a place was released",
        markdown_table(
            ("Reason", "Meaning"),
            [(inline_code(key), words["releases"][key]) for key in Assignment.Released.values],
        ),
        "## Origin of answers",
        markdown_table(
            ("Origin", "Meaning"), [(inline_code(key), words["origins"][key]) for key in Assignment.Origin.values]
        ),
        "## Trust in the annotator's identity",
        markdown_table(("Trust", "Meaning"), trust),
    )
