"""The lines about the words around a study's texts: on the checklist of a draft, and on their page."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.models import Study, Translation
from tests import builders
from tests.messages.checklist.drafts import on, spa, study_with
from tests.messages.lines import At, only_informs
from tests.messages.pages.scenarios import draft, says
from tests.pseudo_language import LANGUAGE, give_pseudo_language, pseudo_file

HEADER = 'msgid ""\nmsgstr "Language: el\\n"\n\n'


def given(text):
    """A change: the draft has the words of this catalogue, whatever it is."""

    def change(study):
        row = Translation.objects.create(language=LANGUAGE, version=str(hash(text)), text=text, by=builders.user())
        Study.objects.filter(pk=study.pk).update(language=LANGUAGE, translation=row)

    return change


def sent(**data):
    def visit(client, study):
        files = {} if data else {"file": SimpleUploadedFile("el.po", pseudo_file().encode())}
        return client.post(reverse("admin:studies_study_words", args=[study.pk]), {**data, **files}, follow=True)

    return visit


CHECKLIST = {
    "read the words around the texts in English": At("/words/", on(spa, study_with(language=LANGUAGE))),
    "is in the language …, and the study in": At("/words/", on(spa, give_pseudo_language, study_with(language="de"))),
    "file of words cannot be used": At("/words/", on(spa, given(f'{HEADER}msgid "A %(n)s"\nmsgstr "B"\n'))),
    "file of words lacks": At("/words/", on(spa, given(HEADER))),
}
PAGES = {
    "The file is removed": only_informs(says(lambda: draft(language=LANGUAGE), sent(remove="1"))),
    "The pages have the words of the file": only_informs(says(lambda: draft(language=LANGUAGE), sent())),
}
