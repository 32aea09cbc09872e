"""Write and read a whole study as one file: its complete design, but no people and no answers. docs: reference/import-formats.

The new draft has the same design and the same design sha256 as the original. People may write bundles by hand, so bundles are
read strictly. Each message names the path of the fault, such as ``sections[1].questions[0].scale``.
"""

from .reading import parse_bundle, read_bundle
from .schema import MAX_BUNDLE_BYTES, SCHEMA, BundleIncomplete, BundleRefused
from .writing import bundle_of, bundle_text, write_bundle

__all__ = [
    "MAX_BUNDLE_BYTES",
    "SCHEMA",
    "BundleIncomplete",
    "BundleRefused",
    "bundle_of",
    "bundle_text",
    "parse_bundle",
    "read_bundle",
    "write_bundle",
]
