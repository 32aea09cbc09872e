"""Who skips the test before the work, because they passed it lately in a study with the same qualification."""

from datetime import timedelta

from django.db.models import Count, Q
from django.utils import timezone

from annotators.counting import Use, select
from annotators.models import Annotator, Assignment, QualificationAttempt
from studies.design.wording import frozen_wording
from studies.models import Design, Study


def find_valid_pass(study: Study, annotator: Annotator, design: Design | None) -> QualificationAttempt | None:
    """Return the newest passed attempt that this design accepts. No query if the design has no qualification."""
    test = frozen_wording(design.pk).test if design else None
    if test is None or test.valid_days is None:
        return None
    passed = QualificationAttempt.objects.filter(
        assignment__annotator=annotator,
        assignment__withdrawn_at=None,
        section__qualification__sections__study=study,
        is_passed=True,
        at__gt=timezone.now() - timedelta(days=test.valid_days),
    )
    return passed.order_by("-at").first()


def count_qualification_results(study: Study) -> dict[str, int | str | None] | None:
    """Return how many annotators passed, failed and skipped the test of a study, or None without a test.

    People who withdrew are not counted.
    """
    test = study.sections.filter(pass_mark__isnull=False).select_related("qualification").first()
    if test is None:
        return None
    attempts = select(
        Use.ROWS, QualificationAttempt.objects.filter(section=test), [Assignment.Origin.LIVE], path="assignment"
    )
    counts = attempts.aggregate(
        passed=Count("assignment__annotator", filter=Q(is_passed=True), distinct=True),
        failed=Count("assignment__annotator", filter=Q(is_passed=False, number=2), distinct=True),
    )
    skipped = select(Use.ROWS, study.assignments.filter(qualified_by__isnull=False), [Assignment.Origin.LIVE])
    return {
        "section": test.position,
        "pass_mark": test.pass_mark,
        "qualification": test.qualification.name if test.qualification else None,
        **counts,
        "skipped": skipped.values("annotator").distinct().count(),
    }
