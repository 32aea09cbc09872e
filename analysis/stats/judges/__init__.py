"""How good a judge (a model or a metric that gives labels) is beside people, and how good it could be.

Rows are labels of people, each beside the judge's label of the same output. People and prompts are samples: intervals
are about people and prompts like these. If nobody knows which person gave which label, prompts are the only sample and
each record says so. Weights are inverse probabilities with which the outputs were drawn.
"""

from analysis.stats.judges._agreement import JudgeAgreement, LabelShares, judge_agreement
from analysis.stats.judges._alternative import (
    AlternativeAnnotatorTest,
    ComparedPerson,
    alternative_annotator_test,
)
from analysis.stats.judges._biases import FamilyProbe, family_probe, length_probe
from analysis.stats.judges._consistency import OrderProbe, RepeatProbe, order_probe, repeat_probe
from analysis.stats.judges._groups import AgreementByGroup, GroupAgreement, agreement_by_group
from analysis.stats.judges._possible import PanelAgreement, PossibleAgreement, possible_agreement
from analysis.stats.judges._rates import JudgeRates, true_positive_and_negative_rates

__all__ = [
    "AgreementByGroup",
    "AlternativeAnnotatorTest",
    "ComparedPerson",
    "FamilyProbe",
    "GroupAgreement",
    "JudgeAgreement",
    "JudgeRates",
    "LabelShares",
    "OrderProbe",
    "PanelAgreement",
    "PossibleAgreement",
    "RepeatProbe",
    "agreement_by_group",
    "alternative_annotator_test",
    "family_probe",
    "judge_agreement",
    "length_probe",
    "order_probe",
    "possible_agreement",
    "repeat_probe",
    "true_positive_and_negative_rates",
]
