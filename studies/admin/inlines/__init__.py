"""Tables of rows on a study's page, one for each part of the study. A section's page has the table of its questions."""

from django.contrib.admin.options import InlineModelAdmin

from .contrasts import ContrastInline
from .design import ArmInline, ExclusionRuleInline, SectionInline, SystemInline
from .families import ComparisonFamilyInline
from .members import MemberInline

INLINES: list[type[InlineModelAdmin]] = [
    SystemInline,
    ArmInline,
    SectionInline,
    ContrastInline,
    ComparisonFamilyInline,
    ExclusionRuleInline,
    MemberInline,
]
