"""The lines about test questions: of the form that makes them, of the file that gives them, and of the draw."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.design.checklist import find_design_problems
from studies.design.draw import draw_batches
from studies.imports.check_files import read_test_question_file
from studies.models import Item, Question
from studies.protocols import UnfillableBatch
from studies.services.known_answers import KnownAnswerRequest, make_test_questions_and_delete_test_runs
from studies.services.lifecycle import ActionRefused
from tests import builders
from tests.admin_pages import logged_in
from tests.messages.lines import NOTHING, Shown

ADMIN, SERVICES = "studies/admin", "studies/services"


def rated(prompts=8, **settings):
    """A section in which texts are rated, with a human author as reference."""
    study = builders.draft_study(systems=("alpha", "human"), prompts=prompts, owner=builders.user())
    return builders.add_rating(study, position=1, m=2, **settings)


def chosen():
    study = builders.draft_study(systems=("alpha", "human"), prompts=8, owner=builders.user())
    return builders.add_choice(study, m=2)


def page_says(response):
    from tests.messages.forms.scenarios import said  # which imports the lists that import this one

    return said(response)


def makes(make=rated, **values):
    """What the page says after the form was sent with these values."""

    def scenario():
        section = make()
        data = {
            "make-question": section.questions.first().pk,
            "make-reference": section.study.systems.get(name="human").pk,
            "make-positive": 1,
            "make-negative": 1,
            "make-damaged": 0,
            "make-damages": ["other"],
        } | {f"make-{name}": value for name, value in values.items()}
        url = reverse("admin:studies_section_test_questions", args=[section.pk])
        return page_says(logged_in(builders.user()).post(url, data, follow=True))

    return scenario


def gives(text, make=rated, name="tests.csv"):
    """What the page says after a file was sent."""

    def scenario():
        section = make()
        data = {
            "given": "1",
            "given-question": section.questions.first().pk,
            "given-file": SimpleUploadedFile(name, text.encode()),
        }
        url = reverse("admin:studies_section_test_questions", args=[section.pk])
        return page_says(logged_in(builders.user()).post(url, data, follow=True))

    return scenario


def deletes(n):
    """What the page says after the same test question was deleted ``n`` times."""

    def scenario():
        makes()()
        section = Item.objects.filter(kind="test").latest("pk").section
        pk = section.items.filter(kind="test").first().pk
        url = reverse("admin:studies_section_test_questions", args=[section.pk])
        client = logged_in(builders.user())
        for _ in range(n):
            page = client.post(url, {"delete": pk}, follow=True)
        return page_says(page)

    return scenario


def refused(act, make=rated):
    def scenario():
        section = make()
        try:
            act(section)
        except (ActionRefused, UnfillableBatch) as error:
            return [Shown(str(error))]
        return []

    return scenario


def asks(section, **columns):
    request = {"question": section.questions.first(), "counts": {"positive": 1}}
    request |= {"reference": section.study.systems.get(name="human")} | columns
    make_test_questions_and_delete_test_runs(section, KnownAnswerRequest(**request), by=builders.user())


def with_columns(**columns):
    def act(section):
        type(section).objects.filter(pk=section.pk).update(**columns)
        section.refresh_from_db()
        asks(section)

    return act


def of_another_section(section):
    other = builders.add_rating(section.study, position=2)
    asks(section, question=other.questions.first())


def shared_items(section):
    builders.add_rating(section.study, position=2, reuses=section)
    asks(section)


def without_prompts():
    section = rated(prompts=1)
    return section


def without_a_middle(section):
    Question.objects.filter(section=section).update(scale={"kind": "text"})
    read_test_question_file(section, section.questions.get(), "t.csv", b"prompt,text,expected\n")


def drawn_without_prompts(section):
    asks(section, counts={"positive": 1})
    draw_batches(section.study, 0, 1)


def source_in_an_arm():
    section = rated()
    study = section.study
    study.arms.get().systems.set(study.systems.filter(name="alpha"))
    study.systems.filter(name="alpha").update(reference="test")
    return [Shown(problem.text) for problem in find_design_problems(study)]


def two_hundred(section_prompts):
    return "prompt,text,expected\n" + "".join(f"x{n},t,high\n" for n in range(section_prompts))


HEADER = "prompt,text,expected\n"
FORMS = {
    f"{ADMIN}:_store_file": [("And 5 more problems", NOTHING, gives(two_hundred(25)))],
    f"{SERVICES}:make_test_questions_and_delete_test_runs": [
        ("No test question can be made from these texts", "Import more prompts", makes(without_prompts, positive=0)),
    ],
    f"{SERVICES}:store_given_test_questions_and_delete_test_runs": [
        (
            "A section can have at most 1000 test questions",
            "Give fewer",
            gives(HEADER + "".join(f"p000,text {n} of many,high\n" for n in range(990)), make=lambda: many(20)),
        ),
    ],
    f"{SERVICES}:_refuse_section": [
        ("This protocol cannot have test questions", "Use ratings", refused(with_columns(protocol="spa"))),
        (
            "Only live sections can have test questions",
            "Choose a live section",
            refused(with_columns(purpose="training")),
        ),
        ("A section that shares its items", "Give each its own items", refused(shared_items)),
    ],
    f"{SERVICES}:_refuse_request": [
        ("The question belongs to another section", "Choose a question of this one", refused(of_another_section)),
        ("Texts can be damaged in these ways", "Choose among them", refused(lambda s: asks(s, damages=("burnt",)))),
        ("No test question is requested", "Enter how many to make", makes(positive=0, negative=0)),
        (
            "A section can have at most 1000 test questions",
            "Make fewer",
            makes(positive=500, negative=500, damaged=1),
        ),
        ("need a reference system", "Choose one", makes(reference="")),
    ],
    f"{SERVICES}:scale_ends": [
        ("has no scale with a middle", "Choose a question that rates", refused(without_a_middle))
    ],
}
PAGES = {
    f"{ADMIN}:_make_questions": [
        ("Test questions are stored: 1 positive, 1 negative.", NOTHING, makes()),
        ("Too few prompts allow the others", "Import more prompts", makes(positive=20)),
    ],
    f"{ADMIN}:_store_file": [
        ("1 test question of the file is new.", NOTHING, gives(HEADER + "p000,a text that is bad,low\n")),
    ],
    f"{ADMIN}:_delete_question": [
        ("The test question is deleted.", NOTHING, deletes(1)),
        ("That test question is already deleted.", NOTHING, deletes(2)),
    ],
}
IMPORTS = "studies/imports"
IMPORTERS = {
    f"{IMPORTS}:read_test_question_file": [
        ("occurs twice with this prompt", "Remove one of the rows", gives(HEADER + "p000,a,low\np000,a,low\n")),
    ],
    f"{IMPORTS}:_test_question": [
        ("row 2, column “text”: is empty", "Fill it in", gives(HEADER + "p000,,low\n")),
        ("no prompt has the key “p99”", "Import it first", gives(HEADER + "p99,a,low\n")),
        ("is the same text", "Enter a worse one", gives("prompt,text,worse\np000,a,a\n", make=chosen)),
        ("must be high, low, or a range from 1 to 5", "such as 4-5", gives(HEADER + "p000,a,9\n")),
    ],
}
CHECKLIST = {
    "studies/design:_test_source_problems": [
        (
            "alpha holds texts of test questions only, but an arm names it",
            "Remove it there",
            source_in_an_arm,
        )
    ],
    "studies/design:take": [
        (
            "no test question is left whose prompt is new to the batch",
            "Make more test questions",
            refused(drawn_without_prompts, make=lambda: rated(positive_share=0.5, negative_share=0.5)),
        )
    ],
}


def many(n):
    """A section with so many test questions, on a study with enough prompts."""
    section = rated(prompts=n + 2)
    asks(section, counts={"positive": n})
    return section
