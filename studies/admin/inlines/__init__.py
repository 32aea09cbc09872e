"""The parts of a study that stand on its own page are tables of rows there; a section's questions stand on the section's page."""

from .contrasts import ContrastInline
from .design import ArmInline, ExclusionRuleInline, SectionInline, SystemInline
from .members import MemberInline

INLINES = [SystemInline, ArmInline, SectionInline, ContrastInline, ExclusionRuleInline, MemberInline]
