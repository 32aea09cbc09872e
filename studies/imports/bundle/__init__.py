"""A whole study as one readable file, both ways: everything of its design, no people, no answers. docs: reference/import-formats.

What is read back has the same design: the sha256 of the new draft is the original's. A bundle may be written by hand, so it is
read strictly, and each message names the path of what is wrong, such as ``sections[1].questions[0].scale``.
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
