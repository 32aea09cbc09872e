"""What annotators' answers to the same questions say about each of them, without a known answer.

`dawid_skene` gives each annotator a matrix of errors, `competence_model` one number: how often they answer and do not
guess. Both take the true answer of an item as unknown and estimate it from all annotators. `severity` compares an
annotator's ratings with those of others about the same items.

All three measure how an annotator differs from the others. A careful annotator with another opinion differs, too.
"""

from analysis.stats.annotator_models._answers import AnnotatorEvidence, AnnotatorModel
from analysis.stats.annotator_models._competence import competence_model
from analysis.stats.annotator_models._dawid_skene import dawid_skene
from analysis.stats.annotator_models._severity import Severity, severity

__all__ = [
    "AnnotatorEvidence",
    "AnnotatorModel",
    "Severity",
    "competence_model",
    "dawid_skene",
    "severity",
]
