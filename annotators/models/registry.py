"""The channels by slug.

The modules in ``annotators.recruitment.channels`` register themselves, so models and places can use channels without an
import.
"""

from typing import Any

REGISTRY: dict[str, Any] = {}


def choices() -> list[tuple[str, str]]:
    return [(channel.slug, channel.label) for channel in REGISTRY.values()]
