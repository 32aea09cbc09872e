"""Samples and codings are made for tests."""

from analysis.coding import samples
from analysis.coding.codebook import EXPLANATIONS_CODEBOOK, REJECTIONS_CODEBOOK
from analysis.coding.samples import draw_coding_sample, read_coded_samples
from analysis.report.coding_blocks import build_coding_blocks
from studies.models import StudyMember
from tests.builders import user

WORDS = "It was plain that the ending did not follow from what came before"


def people(study, *names, role="coder"):
    found = [user(name) for name in names]
    for one in found:
        StudyMember.objects.get_or_create(study=study, user=one, defaults={"role": role})
    return found


def sample_of(study, coders, kind="explanations", rule="union", per_arm=4, **options):
    book = EXPLANATIONS_CODEBOOK if kind == "explanations" else REJECTIONS_CODEBOOK
    return draw_coding_sample(
        study, kind=kind, rule=rule, codebook=book, per_arm=per_arm, coders=coders, by=None, **options
    )


def code_all(sample, coder, labels_of):
    for item in sample.items.all():
        labels = labels_of(item)
        samples.store_coding(item, coder, labels, not labels, 0)


def tables(sample_blocks):
    return {one["name"]: one for block in sample_blocks for one in block.tables}


def made(study):
    return build_coding_blocks(read_coded_samples(study, ["live"]), level=0.95, resamples=199, seed="00")
