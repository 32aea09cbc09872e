"""A study is written into a bundle and read again."""

import io

from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle_files import bundle_text, create_draft_from_bundle
from studies.models import Study


def sha(study: Study) -> str:
    return sha256_of(canonical_json(serialize_design(Study.objects.get(pk=study.pk))))


def read_again(study: Study) -> Study:
    """The study as it comes back from its own file."""
    return create_draft_from_bundle(bundle_text(study).encode(), None)


def png(colour="red") -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (9, 9), colour).save(out, "PNG")
    return out.getvalue()
