"""Models of studies, their design and the batches drawn from it. Database constraints refuse impossible states."""

from .audit import AuditEvent
from .batches import Batch, Expected, Exposure, Item, Placement
from .design import Arm, ArmSystem, Design, Qualification, Question, Section, SectionArm, System
from .events import EventDelivery, EventSubscription, StudyEvent
from .fields import FIRST_TEST_NUMBER, new_seed
from .jobs import Job, JobPart
from .plan import ComparisonFamily, Contrast, ExclusionRule, PilotFile, SizePlan, StudyPilot
from .stimuli import Output, Prompt
from .study import OwnTemplate, ResearcherFacts, Study, StudyMember
from .translation import Translation

__all__ = [
    "Arm",
    "ArmSystem",
    "AuditEvent",
    "Batch",
    "ComparisonFamily",
    "Contrast",
    "Design",
    "EventDelivery",
    "EventSubscription",
    "ExclusionRule",
    "Expected",
    "Exposure",
    "Item",
    "Job",
    "JobPart",
    "Output",
    "OwnTemplate",
    "Placement",
    "Prompt",
    "Qualification",
    "Question",
    "ResearcherFacts",
    "Section",
    "SectionArm",
    "PilotFile",
    "SizePlan",
    "Study",
    "StudyEvent",
    "StudyMember",
    "StudyPilot",
    "System",
    "Translation",
    "FIRST_TEST_NUMBER",
    "new_seed",
]
