"""Write and read a whole study as one file: its complete design, but no people and no answers. docs: reference/import-formats.

The new draft has the same design and the same design sha256 as the original. People may write bundles by hand, so bundles are
read strictly. Each message names the path of the fault, such as ``sections[1].questions[0].scale``.
"""

from .reading import create_draft_from_bundle, parse_bundle_json
from .schema import MAX_BUNDLE_BYTES, SCHEMA, BundleIncomplete, BundleRefused
from .writing import bundle_text, serialize_bundle

__all__ = [
    "MAX_BUNDLE_BYTES",
    "SCHEMA",
    "BundleIncomplete",
    "BundleRefused",
    "serialize_bundle",
    "bundle_text",
    "parse_bundle_json",
    "create_draft_from_bundle",
]
