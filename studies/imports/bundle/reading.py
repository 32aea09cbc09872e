"""Make a new draft from a bundle."""

from typing import Any

from django.db import transaction

from studies.access import Action, check_permission_or_404
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.image_storage import storing_images
from studies.models import Study, audit
from studies.stimuli import strict_json

from .checking import BundleValidator
from .schema import MAX_BUNDLE_BYTES, BundleRefused
from .storing import store_bundle_as_draft


def create_draft_from_bundle(data: bytes | str | dict[str, Any], owner: Any) -> Study:
    """Make a new draft from a bundle, owned by this user. Raise BundleRefused; then nothing was written."""
    check_permission_or_404(owner, Action.CREATE)
    value = parse_bundle_json(data) if isinstance(data, bytes | str) else data
    bundle = BundleValidator(value)
    bundle.check()
    with storing_images(bundle.images, bundle.images.__getitem__), transaction.atomic():
        study = store_bundle_as_draft(bundle, owner)
        digest = sha256_of(canonical_json(serialize_design(study)))
        audit.record_study_event("import bundle", study, by=owner, design_sha256=digest)
    return study


def parse_bundle_json(data: bytes | str) -> dict[str, Any]:
    """Parse the JSON of a bundle strictly: no duplicate keys, no NaN, no characters that a database cannot store."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise BundleRefused([f"The file has {len(data):,} bytes. At most {MAX_BUNDLE_BYTES:,} are allowed."])
    try:
        value = strict_json.loads(data)
    except strict_json.BadJson as error:
        raise BundleRefused([f"{error.position}: {error.text}." if error.position else f"The file {error}"]) from error
    if not isinstance(value, dict):
        raise BundleRefused(["The file must contain one JSON object."])
    return value
