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
from tests.messages.lines import At, Shown, only_informs


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


def practises(text):
    """What the page says after a file of practice items was sent."""

    def scenario():
        section = rated()
        type(section).objects.filter(pk=section.pk).update(purpose="training")
        data = {"given": "1", "file": SimpleUploadedFile("practice.csv", text.encode())}
        url = reverse("admin:studies_section_practice", args=[section.pk])
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
    asks(builders.add_rating(section.study, position=2, reuses=section))


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
    "And … more problems": only_informs(gives(two_hundred(25))),
    "No test question can be made": makes(without_prompts, positive=0),
    "A section can have at most … test questions, and this one has …. Give": gives(
        HEADER + "".join(f"p000,text {n} of many,high\n" for n in range(990)), make=lambda: many(20)
    ),
    "This protocol cannot have test": refused(with_columns(protocol="spa")),
    "Only live sections": refused(with_columns(purpose="training")),
    "This section repeats the items": refused(shared_items),
    "The question belongs": refused(of_another_section),
    "Texts can be damaged": refused(lambda s: asks(s, damages=("burnt",))),
    "No test question is requested": makes(positive=0, negative=0),
    "A section can have at most … test questions, and this one has …. Make": makes(
        positive=500, negative=500, damaged=1
    ),
    "Positive and negative": makes(reference=""),
    "Question … has no scale": refused(without_a_middle),
}
PAGES = {
    "Test questions are stored": only_informs(makes()),
    "Too few prompts": makes(positive=20),
    "of the file … new": only_informs(gives(HEADER + "p000,a text that is bad,low\n")),
    "The test question": only_informs(deletes(1)),
    "That test question": only_informs(deletes(2)),
}
IMPORTERS = {
    "no text of": practises("prompt,systems\np000,nobody\n"),
    "another row has the same": practises("prompt,systems,right:overall\np000,alpha,2\np000,alpha,3\n"),
    "occurs twice with this prompt": gives(HEADER + "p000,a,low\np000,a,low\n"),
    "_test_question: is empty. Fill": At("row 2, column “text”", gives(HEADER + "p000,,low\n")),
    "no prompt has the key": gives(HEADER + "p99,a,low\n"),
    "is the same text": gives("prompt,text,worse\np000,a,a\n", make=chosen),
    "must be high": gives(HEADER + "p000,a,9\n"),
}
CHECKLIST = {
    "holds texts of test": source_in_an_arm,
    "no test question": refused(drawn_without_prompts, make=lambda: rated(positive_share=0.5, negative_share=0.5)),
}


def many(n):
    """A section with so many test questions, on a study with enough prompts."""
    section = rated(prompts=n + 2)
    asks(section, counts={"positive": n})
    return section
