"""The lines about files of attention checks: what is wrong with a row, which section is meant, and what was stored."""

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.imports.check_files import store_attention_checks_and_delete_test_runs
from studies.services.lifecycle import ActionRefused
from tests import attention, builders
from tests.admin_pages import logged_in
from tests.messages.lines import At, Shown, only_informs

HEADER = "key,text,answers,right\n"
ROW = "reads,Choose No.,Yes | No,No\n"


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
    "exists with other": given("reads,Choose Yes.,Yes | No,Yes\n", before=ROW),
    "Section … holds": in_section(1, 1),
    "Several sections hold": in_section(None, 2),
    "is also in row": At("row 3, column “key”", given(ROW + ROW)),
    "_parse_row: is empty. Fill": At("row 2, column “text”", given("reads,,Yes | No,No\n")),
    "is not among the answers": given("reads,Choose No.,Yes | No,Perhaps\n"),
    "may have only letters": given("a b,Choose No.,Yes | No,No\n"),
    "answer … is empty": given("reads,Choose No.,Yes | | No,No\n"),
    "occurs twice. Remove": given("reads,Choose No.,Yes | Yes,Yes\n"),
    "has …. Write": At("column “answers”", given("reads,Choose No.,No,No\n")),
}
PAGES = {
    "Attention checks of section": only_informs(given(ROW)),
}
