"""Plans with few simulated studies, so that tests are fast. What they store is as complete as that of a real plan."""

import re
from html import unescape

from analysis.planning.inputs import PlanInputs
from analysis.stats.planning.inputs import StudySize, Target


def inputs(**target) -> PlanInputs:
    return PlanInputs(StudySize(protocol="two_choice", people=12, prompts=20, prompts_each=5), Target(**target))


def words(response) -> str:
    """The text that a reader sees, without markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.content.decode())))
