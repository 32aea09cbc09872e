"""Studies with practice items of every protocol that can have them."""

from studies.models import Section
from studies.services.known_answers import create_practice_item_and_delete_test_runs
from tests import builders

SYSTEMS = ("alpha", "beta", "gamma")
# protocol: systems of an item, expected answers, right values and wrong values of a page by question key
CASES = {
    "rating": (("beta", "alpha", "gamma"), {"rating": "4-5"}),
    "two_choice": (("beta", "alpha"), {"choice": "first"}),
    "relative": (("beta", "alpha"), {"better": "second"}),
    "ranking": (SYSTEMS, {"place": "1-2"}),
    "best_worst": (SYSTEMS, {"best": "first", "worst": "second"}),
}


def outputs_of(study, prompt: int, names):
    prompt_row = study.prompts.order_by("key")[prompt]
    return [prompt_row.outputs.get(system__name=name) for name in names]


def practised_draft(protocol, n_items=4, m=2, pass_mark: int | None = 2, owner=None):
    study = builders.draft_study(systems=SYSTEMS, prompts=16, target_n=4, owner=owner)
    section = builders.add_section(study, protocol, position=1, m=m)
    names, given = CASES[protocol]
    if protocol in ("rating", "two_choice"):
        section.questions.update(key=next(iter(given)))
    n_right = len(given)
    Section.objects.filter(pk=section.pk).update(purpose="training", pass_mark=pass_mark and pass_mark * n_right)
    section.refresh_from_db()
    for number in range(n_items):
        create_practice_item_and_delete_test_runs(
            section, outputs_of(study, number, names), f"Because gold{number}.", given, by=None
        )
    settings = {"stopping": "none"} if protocol == "two_choice" else {}
    builders.add_section(study, protocol, position=2, m=3, settings=settings)
    return study, section
