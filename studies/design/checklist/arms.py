"""Check the arms of a study: their shares and their minutes."""

from collections.abc import Iterator

from studies.design.draw import ArmSharesRefused, build_arm_block
from studies.models import Arm, Study
from studies.protocols import Problem


def arm_problems(study: Study, arms: list[Arm]) -> Iterator[Problem]:
    try:
        build_arm_block(arms)
    except ArmSharesRefused as refused:
        yield Problem(str(refused), "arms")
    else:
        places = sum(arm.wanted or 0 for arm in arms)
        if places and study.target_n and places != study.target_n:
            yield Problem(
                f"The arms have {places} places in total, but the target is {study.target_n}. Arms are filled in these proportions.",
                "arms",
                False,
                "arms_and_target_differ",
            )
    longest = max((arm.minutes or 0 for arm in arms), default=0)
    if study.minutes and longest > study.minutes:
        yield Problem(
            f"An arm takes {longest} minutes, but the study declares {study.minutes}. The study's minutes decide how long places are held.",
            "minutes",
            False,
            "arm_takes_longer",
        )
