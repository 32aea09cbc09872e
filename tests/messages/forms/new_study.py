"""The lines of the pages of a new study."""

from django.urls import reverse

from studies.models import Batch, Question, System
from studies.services import questions
from tests import builders
from tests.messages.forms.scenarios import me, posted, says_refused

CRITERIA = ["clarity", "fluency", "order", "grammar", "spelling", "truth"]
OWN = {
    "criterion": "own",
    "own_name": "Clarity",
    "own_definition": "It is clear.",
    "own_low": "bad",
    "own_high": "good",
}


def undesigned():
    return builders.draft_study(owner=me(), guide={})


def chooses(card, **fields):
    sent = {"card": card, "criterion": "overall"} | fields
    return posted(undesigned, lambda study: reverse("new_study_question", args=[study.pk]), **sent)


def plan_all_pairs_of(n_systems):
    study = builders.draft_study(systems=(), owner=me())
    System.objects.bulk_create(System(study=study, name=f"s{number}") for number in range(n_systems))
    questions.add_missing_comparisons(study, me())


def written_over(change):
    """What the page says that would write its section again, after another change."""

    def act():
        study = undesigned()
        texts = questions.read_draft_texts(study)
        made = questions.build_guided_section(study, questions.REGISTRY["marks"], texts, [], None, None, {})
        change(questions.write_guided_section(study.pk, made, me()))
        questions.write_guided_section(study.pk, made, me())

    return says_refused(act)


def refer_to_the_section(study):
    section = study.sections.get()
    builders.add_section(study, "marks", position=9, reuses=section)
    study.sections.filter(position=9).update(purpose="training")


FORMS = {
    "Choose one of the cards": chooses(""),
    "Only … prompts can be shown": chooses("two_choice", m="99"),
    "Your own wording needs this": chooses("two_choice", criterion="own"),
    "The question does not contain {x} and {y}. Add both; they become letters": chooses(
        "spa", **OWN, own_question="Is it?"
    ),
    "At most … criteria fit": chooses("rating", more=CRITERIA),
    "This card asks by one criterion": chooses("ranking", more=CRITERIA),
    "Two criteria have the same name": chooses("rating", **OWN, more=CRITERIA[:1]),
    "write_guided_section: The study has a section that was made": written_over(
        lambda study: builders.add_spa(study, position=2)
    ),
    "write_guided_section: The study has ready-made batches, which": written_over(
        lambda study: Batch.objects.create(study=study, number=0, arm=study.arms.get(), origin="imported")
    ),
    "write_guided_section: Its section was changed": written_over(
        lambda study: Question.objects.filter(section__study=study).update(text="Another?")
    ),
    "All pairs of … systems are too many": says_refused(lambda: plan_all_pairs_of(21)),
    "Something else refers": written_over(refer_to_the_section),
}
