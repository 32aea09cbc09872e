"""Which prompts belong together: read from a file, proposed, frozen with the design, and carried along by every file of a study."""

import io
import json
import zipfile

import pytest
from django.urls import reverse

from analysis.report.archive import archive_blocks
from studies.access import add_owner
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.imports.tables import run
from studies.imports.tables.columns import GROUP_COLUMNS, GROUPS_BY
from studies.models import Prompt
from studies.models.guards import StudyFrozen
from studies.services import lifecycle
from studies.services.copying import clone_study
from tests import builders
from tests.admin_pages import logged_in
from tests.studies.imports.files import lines, sound

pytestmark = pytest.mark.django_db
# Three documents of two prompts each, and a prompt that is alone.
DOCUMENTS = ("one", "one", "two", "two", "three", "three", "")
NOUNS = {"document": "document", "doc_id": "document", "dialogue": "dialogue", "topic": "topic", "source": "source"}
OUTPUTS = ("output:ada=output:ada", "output:bo=output:bo")


def rows(column="group", groups=DOCUMENTS):
    return [
        {"prompt_key": f"p{n}", "prompt_text": f"Go {n}.", "output:ada": f"A {n}.", "output:bo": f"B {n}."}
        | ({column: group} if group else {})
        for n, group in enumerate(groups)
    ]


def groups_of(study):
    return tuple(study.prompts.order_by("key").values_list("group", flat=True))


def proposals(report):
    return {finding.examples[0] for finding in report.findings if finding.kind == "groups_proposed"}


def sha(study):
    return sha256_of(canonical_json(serialize_design(study)))


def test_the_column_group_is_the_group(study, put):
    report = sound(put(lines(rows()), "a.jsonl"))
    assert groups_of(study) == DOCUMENTS
    assert next(f for f in report.findings if f.kind == "groups").count == 3 and not proposals(report)
    assert not sound(put(lines(rows()), "a.jsonl")).has_changes


@pytest.mark.parametrize("name", GROUPS_BY)
def test_another_name_is_proposed_and_not_taken(study, put, name):
    report = sound(put(lines(rows(name)), "a.jsonl"))
    assert proposals(report) == {name} and groups_of(study) == ("",) * 7
    report = sound(put(lines(rows(name)), "a.jsonl", groups_by=name, replaces_changed=True))
    taken = ("source 1", "source 1", "source 2", "source 2", "source 3", "source 3", "")
    assert groups_of(study) == (taken if name == "source" else DOCUMENTS) and not proposals(report)
    assert not sound(put(lines(rows(name)), "a.jsonl", groups_by=name)).has_changes


@pytest.mark.parametrize(
    ("column", "options", "noun"),
    [
        *((name, {"groups_by": name}, noun) for name, noun in NOUNS.items()),
        ("group", {}, ""),
        ("group:topic", {}, "topic"),
        ("group:cluster", {}, ""),
        (
            "Dialog-ID",
            {"columns": ("prompt_key=prompt_key", "prompt_text=prompt_text", "group=Dialog-ID", *OUTPUTS)},
            "dialogue",
        ),
        ("cluster", {"columns": ("prompt_key=prompt_key", "prompt_text=prompt_text", "group=cluster", *OUTPUTS)}, ""),
    ],
)
def test_a_study_keeps_the_word_of_the_column(study, put, column, options, noun):
    sound(put(lines(rows(column)), "a.jsonl", **options))
    study.refresh_from_db()
    assert study.group_noun == noun and len(set(groups_of(study))) == 4


def test_two_words_for_the_groups_of_one_study_are_no_word(study, put):
    sound(put(lines(rows("document")[:4]), "a.jsonl", groups_by="document"))
    sound(put(lines(rows(groups=("",) * 7)), "b.jsonl"))  # has no group, so the word stays
    study.refresh_from_db()
    assert study.group_noun == "document"
    sound(put(lines(rows("topic")[4:]), "c.jsonl", groups_by="topic", replaces_changed=True))
    study.refresh_from_db()
    assert study.group_noun == ""


def test_the_word_is_in_design_bundle_and_copy_only_if_there_is_one(study, put):
    sound(put(lines(rows()), "a.jsonl"))
    assert "group_noun" not in serialize_bundle(study)["study"]
    before = sha(study)
    study.group_noun = "document"
    study.save()
    assert sha(study) != before
    owner = builders.user()
    again = create_draft_from_bundle(serialize_bundle(study), owner)
    assert again.group_noun == "document" and sha(again) == sha(study)
    assert clone_study(again, owner).group_noun == "document"


@pytest.mark.parametrize("name", GROUPS_BY)
@pytest.mark.parametrize("groups", [("all",) * 7, tuple("abcdefg")])
def test_a_column_that_separates_nothing_is_not_proposed(study, put, name, groups):
    assert not proposals(sound(put(lines(rows(name, groups)), "a.jsonl")))


def test_a_later_file_goes_on_with_the_numbers_of_sources(study, put):
    sound(put(lines(rows("source")[:4]), "a.jsonl", groups_by="source"))
    sound(put(lines(rows("source")), "b.jsonl", groups_by="source"))
    assert groups_of(study) == ("source 1", "source 1", "source 2", "source 2", "source 3", "source 3", "")


def test_groups_that_look_the_same_are_refused(study, put):
    report = put(lines(rows(groups=("Doc 1", "doc 1"))), "a.jsonl")
    assert [str(problem) for problem in report.problems] == [
        "row 2, column “group”: “doc 1” and “Doc 1” differ only in case or blanks."
    ]


def test_a_prompt_has_one_group(study, put):
    report = put(lines([*rows(), rows()[0] | {"group": "two"}]), "a.jsonl")
    assert "differs from row 1" in str(report.problems.first[0]) and report.problems.first[0].column == "group"
    sound(put(lines(rows()), "a.jsonl"))
    report = put(lines([rows()[0] | {"group": "two"}]), "b.jsonl")
    assert "Replace content" in str(report.problems.first[0])
    sound(put(lines([rows()[0] | {"group": "two"}]), "b.jsonl", replaces_changed=True))
    assert groups_of(study)[0] == "two"


def test_the_page_offers_a_proposal_and_reads_the_file_again(study):
    owner = builders.user()
    add_owner(study, owner)
    client = logged_in(owner)
    upload = run.store_upload([lines(rows("dialogue"))], "a.jsonl", study_id=study.pk, user_id=owner.pk, options={})
    run.dry_run_upload(study, upload, owner)
    address = reverse("import_confirm", args=[study.pk, upload.token])
    page = client.get(address).content.decode()
    assert "Use the column “dialogue” as groups" in page
    client.post(address, {"groups_by": "nonsense"})
    assert "Use the column “dialogue” as groups" in client.get(address).content.decode()
    client.post(address, {"groups_by": "dialogue"})
    page = client.get(address).content.decode()
    assert "Use the column" not in page and "Groups of prompts: 3, with 6 prompts; prompts without a group: 1." in page
    assert not study.prompts.exists()
    client.post(address, {"confirm": "1"})
    assert groups_of(study) == DOCUMENTS


def test_only_groups_change_a_designs_hash_and_a_bundle(study, put):
    sound(put(lines(rows(groups=("",) * 7)), "a.jsonl"))
    before = sha(study)
    assert all("group" not in row for row in serialize_bundle(study)["prompts"])
    Prompt.objects.filter(key="p0").update(group="one")
    assert sha(study) != before
    Prompt.objects.filter(key="p0").update(group="")
    assert sha(study) == before


def test_bundle_copy_and_archive_carry_the_groups(study, put):
    sound(put(lines(rows()), "a.jsonl"))
    owner = builders.user()
    again = create_draft_from_bundle(serialize_bundle(study), owner)
    assert groups_of(again) == DOCUMENTS and sha(again) == sha(study)
    assert groups_of(clone_study(again, owner)) == DOCUMENTS
    archive = zipfile.ZipFile(io.BytesIO(b"".join(archive_blocks(study))))
    archived = [json.loads(line) for line in archive.read("stimuli/prompts.jsonl").splitlines()]
    assert [row.get("group", "") for row in archived] == list(DOCUMENTS) and "group" not in archived[-1]


def test_a_group_does_not_change_after_the_launch():
    study = builders.draft_study(prompts=4)
    builders.add_choice(study)
    builders.launched(study)
    prompt = study.prompts.first()
    for change in (
        lambda: Prompt.objects.filter(pk=prompt.pk).update(group="one"),
        lambda: Prompt.objects.bulk_update([prompt], ["group"]),
        prompt.save,
    ):
        prompt.group = "one"
        with pytest.raises(StudyFrozen):
            change()
    assert "group" not in Prompt.amendable_fields and "prompts" not in lifecycle.AMENDABLE
    assert groups_of(study) == ("",) * 4


def test_columns_that_may_be_groups_are_read_in_any_case(study, put):
    header = "prompt_key,prompt_text,output:ada,output:bo,"
    for name in GROUP_COLUMNS:
        table = header + name.upper() + "\n" + "".join(f"{name}{n},Go.,A,B,{'xxyy'[n]}\n" for n in range(4))
        assert proposals(sound(put(table.encode(), is_dry_run=True))) == {name}
