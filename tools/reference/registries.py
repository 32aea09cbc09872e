"""The pages of registered protocols, channels, exclusion rules and scales."""

import dataclasses
from inspect import cleandoc
from typing import Any

from analysis.exclusions.screening import MANDATORY_RULES
from annotators.recruitment import channels
from studies import protocols
from studies.design.criteria import CRITERIA, SOURCE_NAME, SOURCE_URL
from studies.models import design
from studies.protocols.base.fields import SCALE_KINDS, ScaleSpec, values_of_new_row

from .markdown import as_sentence, build_page, inline_code, markdown_facts_list, markdown_table


def protocols_page() -> str:
    parts = []
    for protocol in sorted(protocols.REGISTRY.values(), key=lambda registered: registered.slug):
        parts += [f"## {protocol.slug}: {protocol.label}", as_sentence(protocol.help)]
        facts = [
            ("Template", inline_code(protocol.template)),
            (
                "Letters",
                "one for each system, fixed for the whole section"
                if protocol.labels == "section"
                else "drawn for each item",
            ),
            ("Shows items", "yes" if protocol.has_items else "no: m is 0"),
            ("Default scale of a question", SCALE_KINDS[protocol.default_scale_kind][0]),
            ("Source", protocol.source),
        ]
        parts.append(markdown_facts_list(facts))
        if estimands := protocol.estimands(None):
            parts += [
                "Estimands of planned comparisons (the first is the default):",
                markdown_table(("Estimand", "Meaning"), [(inline_code(k), v) for k, v in estimands.items()]),
            ]
        parts += _settings(protocol.settings_form)
    return build_page(
        "Protocols",
        "A protocol defines what a section shows, asks and estimates. Each protocol is one package or module in `studies/protocols/`, one in "
        "`analysis/protocols/`, and one template. "
        "To add one, see [Write a protocol](../how-to/write-a-protocol.md).",
        *parts,
    )


def _settings(form: type | None) -> list[str]:
    if form is None:
        return ["It has no settings."]
    fields, defaults = form().fields, values_of_new_row(form)
    rows = [
        (inline_code(name), _default_text(field, defaults[name]), _field_description(name, field))
        for name, field in fields.items()
    ]
    return ["Settings:", markdown_table(("Setting", "Default", "Meaning"), rows)]


def _default_text(field: Any, value: Any) -> str:
    if callable(value):
        return "generated"
    if value in (None, "", []):
        return "" if field.required else "none"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return inline_code(text) if len(text) <= 40 and "\n" not in text else "a default text"


def _field_description(name: str, field: Any) -> str:
    words = [as_sentence(field.label)] if field.label and field.label.replace(" ", "_") != name else []
    if choices := [(key, label) for key, label in getattr(field, "choices", ()) if key]:
        words.append("; ".join(f"{inline_code(key)}: {label}" for key, label in choices) + ".")
    if field.help_text:
        words.append(as_sentence(field.help_text))
    return " ".join(words) or as_sentence(name.replace("_", " "))


def channels_page() -> str:
    parts = []
    for channel in sorted(channels.REGISTRY.values(), key=lambda registered: registered.slug):
        parts += [f"## {channel.slug}: {channel.label}", as_sentence(channel.help)]
        parts.append(
            "heval recognises a person who comes twice."
            if channel.identifies_people
            else "heval cannot recognise people. They can come back only by the address of their own page, and the report says that identity is unverified."
        )
        parts += _settings(channel.settings_form)
    outcomes = markdown_table(
        ("Outcome", "Meaning"), [(inline_code(key), as_sentence(words)) for key, words in channels.OUTCOMES.items()]
    )
    return build_page(
        "Channels",
        "A channel is a way by which annotators come to a study. Each link belongs to one channel and has its own settings. "
        "To use them, see [Send annotators from any panel](../how-to/send-annotators-from-a-panel.md); to add one, see "
        "[Write a channel](../how-to/write-a-channel.md).",
        *parts,
        "## Ends of a visit",
        outcomes,
    )


def rules_page() -> str:
    parts = []
    for rule in sorted(design.REGISTRY.values(), key=lambda registered: registered.slug):
        parts += [f"## {rule.slug}", as_sentence(rule.label), cleandoc(rule.help)]
        facts = [
            ("Applied", "to every study" if rule.slug in MANDATORY_RULES else "if the design declares it"),
            ("Looks at outcomes", "no" if rule.is_outcome_blind else "yes: left out of the recommended estimates"),
            ("Source", rule.source),
        ]
        parts.append(markdown_facts_list(facts))
        if rule.settings_form:
            parts += _settings(rule.settings_form)
    return build_page(
        "Exclusion rules",
        "A rule gives every submitted assignment `pass`, `fail` or `unknown`. `unknown` never excludes. A design declares its rules before the "
        "first answer, each as *primary* (applied to the headline) or *sensitivity* (shown beside it).",
        "Every rule uses the original answers, so the order of the rules does not change who is kept.",
        *parts,
    )


def scales_page() -> str:
    meanings = {
        "kind": "One of the scales above.",
        "minimum": "The lowest value. For `likert` the default is 1.",
        "maximum": "The highest value. For `likert` the default is the number of labels, or 5.",
        "low": "Words at the low end.",
        "middle": "Words in the middle.",
        "high": "Words at the high end, or beside the box of an `acknowledgement`.",
        "labels": "Words for every point, from the lowest.",
        "options": "Answers to choose from: `key`, `label`, `screens_out` for an answer that ends a screening section's visit, and `is_right` for the right answer of an attention check.",
        "minimum_length": "The smallest number of characters of a text.",
        "maximum_length": "The largest number of characters of a text.",
        "is_long": "Whether the box has several lines.",
        "is_best_first": "Whether points are listed from the highest to the lowest.",
        "is_lower_better": "Whether a lower rating is better, for example if people rate mistakes. Only the report uses it.",
    }
    rows = [
        (inline_code(kind), as_sentence(words), inline_code(column)) for kind, (words, column) in SCALE_KINDS.items()
    ]
    parts = [
        (inline_code(field.name), inline_code(_plain(field.default)), meanings[field.name])
        for field in dataclasses.fields(ScaleSpec)
    ]
    return build_page(
        "Scales",
        "Every question has a scale. In the admin you fill in a form; in files and over REST a scale is a JSON object such as "
        '`{"kind": "likert", "maximum": 5, "low": "bad", "high": "good"}`.',
        markdown_table(("Kind", "Answer", "Stored in"), rows),
        "## Keys of a scale",
        markdown_table(("Key", "Default", "Meaning"), parts),
        "In analyses every number lies between 0 and 1: `(value - minimum) / (maximum - minimum)`. The database stores the number that the annotator gave.",
        "Annotators can type `70`, `+70`, `70.0` or `70,0`, with the digits of any script, and with `%` if the field has that unit. "
        "heval stores the number. It refuses `70.5` and `1,000`, and the message says why.",
        "If an annotator switches on *Answer with number keys*, each option has a key, which is shown beside it. The key is the "
        "number of the point, or the position of the option if points have no numbers. A point such as 10 or -1 has no key. Enter outside a field sends the page; in a field, it leads to the next one.",
    )


def _plain(value: Any) -> str:
    return "" if value in ("", ()) else str(value).lower() if isinstance(value, bool) else str(value)


def criteria_page() -> str:
    rows = [
        (
            one.name,
            inline_code(one.key),
            one.how.format(it="this text"),
            one.definition,
            ", ".join(one.points),
            f"{one.code}: {one.standard_name}",
        )
        for one in CRITERIA
    ]
    return build_page(
        "Criteria",
        "The page *Question* of a new study offers these criteria, each with a question, its definition and the words of five points, the worst "
        "first. The wording is heval's, and you can change it or write your own.",
        f"The last column has the code and the name in [{SOURCE_NAME}]({SOURCE_URL}). Report them, so that others know whether they "
        "measured the same.",
        markdown_table(("Criterion", "Key", "Question", "Definition", "Points", "Standard name"), rows),
    )
