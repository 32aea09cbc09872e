"""The models of this app. These modules import nothing else from the app."""

from .assignments import (
    Annotator,
    Assignment,
    Exclusion,
    Inquiry,
    PageVisit,
    PanelIdentity,
    Response,
    new_code,
)
from .barring import Barring
from .pay import OutcomePay, Payment
from .qualifications import QualificationAttempt
from .recruitment import (
    PanelBar,
    PanelEvent,
    PanelOrder,
    PanelPlan,
    PanelSecret,
    PanelSubmission,
    PanelTask,
    Recruitment,
    RecruitmentArm,
    SampleColumn,
    SampleValue,
    new_key,
)
from .verdicts import Appeal, Verdict

__all__ = [
    "Annotator",
    "Appeal",
    "Assignment",
    "Barring",
    "Exclusion",
    "Inquiry",
    "OutcomePay",
    "PageVisit",
    "PanelBar",
    "PanelEvent",
    "PanelIdentity",
    "PanelOrder",
    "PanelPlan",
    "PanelSecret",
    "PanelSubmission",
    "PanelTask",
    "Payment",
    "QualificationAttempt",
    "Recruitment",
    "RecruitmentArm",
    "Response",
    "SampleColumn",
    "SampleValue",
    "Verdict",
    "new_code",
    "new_key",
]
