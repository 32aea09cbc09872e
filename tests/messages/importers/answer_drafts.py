"""The drafts into which the answers of the list are imported."""

from studies.models import Study
from tests import builders


def choice_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=12)
    builders.add_choice(study, strategy="any", stopping="none")
    return study


def rating_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4)
    builders.add_rating(study, position=1, m=1)
    return study


def spa_draft() -> Study:
    return builders.spa_draft(with_surveys=False, with_rating=False, systems=("alpha", "beta"))


def full_draft() -> Study:
    return builders.spa_draft(systems=("alpha", "beta"))


def humanlike_draft() -> Study:
    return builders.humanlike_draft(domains=("news",))


def marks_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4)
    builders.add_marks(study, position=1, m=1)
    return study


def three_systems():
    study = builders.draft_study(systems=("alpha", "beta", "gamma"), prompts=12)
    builders.add_choice(study, strategy="any", stopping="none")
    return study
