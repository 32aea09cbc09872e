"""The parts of a bundle, and the errors for refused bundles."""

SCHEMA = "heval.bundle/1"
MAX_BUNDLE_BYTES = 200 * 1024 * 1024
MAX_PROBLEMS = 100

PROMPT_FIELDS = ("key", "text", "source", "media", "domain", "language", "attributes", "group")
OUTPUT_FIELDS = ("sample", "format", "text", "media", "alt", "is_empty", "original", "language")
SECTION_FIELDS = ("position", "protocol", "purpose", "m", "settings")
# Only sections that are tests have them.
TEST_FIELDS = ("pass_mark", "qualification")
QUALIFICATION_FIELDS = ("name", "valid_days")
SYSTEM_FIELDS = ("name", "is_human", "reference")
RULE_FIELDS = ("position", "rule", "settings", "role")
BATCH_FIELDS = ("number", "key", "wanted")
ITEM_FIELDS = ("number", "kind", "test_type")
EXPECTED_FIELDS = ("low", "high", "explanation")


class BundleRefused(ValueError):
    """Not a bundle, or an invalid one. ``problems`` lists each fault with its path."""

    def __init__(self, problems: list[str]):
        super().__init__("; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else ""))
        self.problems = problems


class BundleIncomplete(Exception):
    """A study that cannot be exported completely, because one of its files is missing."""
