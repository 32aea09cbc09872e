"""Clark et al. 2021: whether the printed columns of Tables 1 and 2 fit together, and what the printed tests imply.

The answers were not published. 130 evaluators of five texts each make 650 answers a row, 390 evaluators a condition.
"""

from tools.proofs.papers.not_gold.identities import identities
from tools.proofs.papers.not_gold.inference import degrees_of_freedom, effects, stars
from tools.proofs.papers.rows import Part

PARTS = (
    Part("not_gold", "identities", identities),
    Part("not_gold", "degrees_of_freedom", degrees_of_freedom),
    Part("not_gold", "stars", stars),
    Part("not_gold", "effects", effects),
)
