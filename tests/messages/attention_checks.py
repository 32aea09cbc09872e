"""The lines about files of attention checks: what is wrong with a row, which section is meant, and what was stored."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.imports.check_files import store_attention_checks_and_delete_test_runs
from studies.services.lifecycle import ActionRefused
from tests import attention, builders
from tests.admin_pages import logged_in
from tests.messages.lines import NOTHING, Shown

HEADER = "key,text,answers,right\n"
ROW = "reads,Choose No.,Yes | No,No\n"
IMPORTS, ADMIN = "studies/imports", "studies/admin"


def given(text, before=""):
    """What the page says after a file, in a draft into which ``before`` was read."""

    def scenario():
        from tests.messages.forms.scenarios import said  # which imports the lists that import this one

        study = builders.spa_draft(owner=builders.user())
        client = logged_in(builders.user())
        url = reverse("admin:studies_study_attention_checks", args=[study.pk])
        for sent in filter(None, (before, text)):
            answer = client.post(url, {"file": SimpleUploadedFile("c.csv", (HEADER + sent).encode())}, follow=True)
        return said(answer)

    return scenario


def in_section(position, n_sections):
    def scenario():
        study = builders.spa_draft(owner=builders.user())
        for number in range(n_sections):
            attention.add_attention(study, position=8 + number)
        try:
            store_attention_checks_and_delete_test_runs(study, "c.csv", b"", by=builders.user(), position=position)
        except ActionRefused as refused:
            return [Shown(str(refused))]
        return []

    return scenario


IMPORTERS = {
    f"{IMPORTS}:store_attention_checks_and_delete_test_runs": [
        ("“reads” exists with other words", "Allow replacing", given("reads,Choose Yes.,Yes | No,Yes\n", before=ROW)),
    ],
    f"{IMPORTS}:_section": [
        ("Section 1 holds no attention checks", "Choose a section with this purpose", in_section(1, 1)),
        ("Several sections hold attention checks: 8, 9", "Choose one of them", in_section(None, 2)),
    ],
    f"{IMPORTS}:_read_checks": [("row 3, column “key”: “reads” is also in row 2", "Change one", given(ROW + ROW))],
    f"{IMPORTS}:_parse_row": [
        ("row 2, column “text”: is empty", "Fill it in", given("reads,,Yes | No,No\n")),
        ("“Perhaps” is not among the answers", "Copy one of them", given("reads,Choose No.,Yes | No,Perhaps\n")),
    ],
    f"{IMPORTS}:_parse_key": [
        ("may have only letters, digits", "Change it", given("a b,Choose No.,Yes | No,No\n")),
    ],
    f"{IMPORTS}:_parse_answers": [
        ("answer 2 is empty", "Write a text between the bars", given("reads,Choose No.,Yes | | No,No\n")),
        ("“Yes” occurs twice", "Remove one of them", given("reads,Choose No.,Yes | Yes,Yes\n")),
        ("column “answers”: has 1", "Write 2 to 20", given("reads,Choose No.,No,No\n")),
    ],
}
PAGES = {
    f"{ADMIN}:_store_file": [("Attention checks of section", NOTHING, given(ROW))],
}
