"""A small study of any protocol, built of what the protocol says of itself; a new protocol has one without a change here."""

from studies.design import checklist
from studies.models import Contrast, Output, Section, Study
from studies.protocols import REGISTRY
from tools.proofs.bench.study import text_of

from .builders import add_section, draft_study


def blocking(study: Study) -> list[str]:
    return [problem.text for problem in checklist.find_design_problems(study) if problem.is_blocking]


def checked(study: Study, slug: str) -> Study:
    """The draft, or a failure that says what the protocol does not say of itself."""
    missing = blocking(study)
    assert not missing, (
        f"No sample of the protocol {slug} can be launched: {' '.join(missing)} Say in `sample` of studies/protocols/{slug} what a "
        "small study of it needs: how many systems, whether one is a human author, which questions, which settings (studies.protocols.Sample)."
    )
    return study


def compared(section: Section, **columns) -> None:
    """Plan a comparison with these columns, where the protocol estimates something."""
    protocol, study = REGISTRY[section.protocol], section.study
    if protocol.estimands(section):
        first, second, *_ = study.systems.order_by("name")
        # Machines are compared with people in general: the comparison names no systems.
        pair = {} if protocol.sample.has_human_system else {"x": second, "y": first, "expected": ">"}
        Contrast.objects.create(study=study, **pair | columns)


def sample_draft(slug: str, m: int = 2, target_n: int = 1) -> Study:
    """A draft of m prompts for so many annotators, its texts of about 110 words."""
    needs = REGISTRY[slug].sample
    names = [f"system-{n}" for n in range(needs.systems)]
    if needs.has_human_system:
        names[0] = "human"
    study = draft_study(systems=names, prompts=m * target_n + 4, target_n=target_n, instructions="")
    section = add_section(study, slug, m=m)
    if not needs.has_human_system or m > 1:  # of one text nobody knows beforehand whose it is
        compared(section)
    outputs = list(Output.objects.filter(system__study=study).select_related("system").order_by("pk"))
    for n, output in enumerate(outputs):
        output.text = text_of(output.system.name, n)
    Output.objects.bulk_update(outputs, ["text"], batch_size=200)
    return checked(study, slug)
