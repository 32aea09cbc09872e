"""The lines of the checklist: what is missing or unwise in a draft. Each problem is linked to where it is changed."""

from tests.messages import known_answers
from tests.messages.checklist import attention, best_worst, design, families, protocols, qualification, size_plans
from tests.messages.lines import together

LINES = together(
    design.LINES,
    attention.LINES,
    qualification.LINES,
    protocols.LINES,
    best_worst.LINES,
    families.LINES,
    size_plans.LINES,
    known_answers.CHECKLIST,
)
