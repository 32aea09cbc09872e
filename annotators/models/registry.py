"""The channels by slug. The modules of ``annotators.recruitment.channels`` register themselves; models and places ask them without importing one."""

from typing import Any

REGISTRY: dict[str, Any] = {}


def choices() -> list[tuple[str, str]]:
    return [(channel.slug, channel.label) for channel in REGISTRY.values()]
