"""Files as people have them: what each column is, is proposed, shown, and changed by whoever knows better."""

import json
import re
from collections import Counter

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from studies.imports.tables.columns import Options
from studies.imports.tables.mapping import parse_mapping
from studies.imports.tables.run import import_stimuli_file
from studies.models import Output, Prompt, Study
from studies.services import drafts
from studies.services.copying import clone_study
from studies.stimuli.texts import SettingsRefused, key_from_text
from tests.admin_pages import logged_in
from tests.builders import user
from tests.studies.imports.own import EXPECTED, FILES, QUESTIONS, csv_of, wide
from tests.studies.stimuli.workbooks import workbook

pytestmark = pytest.mark.django_db


def draft() -> Study:
    return Study.objects.create(title="own")


def imported(study: Study, tmp_path, name: str, data: bytes, is_dry_run=False, **options):
    path = tmp_path / name
    path.write_bytes(data)
    chosen = Options(creates_systems=True, **options)
    return import_stimuli_file(study, path, by=None, options=chosen, is_dry_run=is_dry_run)


def outputs(study: Study) -> dict[tuple[str, str], str]:
    rows = Output.objects.filter(system__study=study).values_list("system__name", "prompt__key", "text")
    return {(system, key): text for system, key, text in rows}


@pytest.mark.parametrize("case", FILES)
def test_a_file_with_other_names_is_read_whole(tmp_path, case):
    study = draft()
    report = imported(study, tmp_path, *FILES[case], proposes_columns=True)
    assert report.is_written, list(report.problems)
    assert outputs(study) == EXPECTED
    assert dict(study.prompts.values_list("key", "text")) == {key_from_text(text): text for text in QUESTIONS}
    again = imported(study, tmp_path, *FILES[case], proposes_columns=True)
    assert not again.has_changes and again.counts["outputs"].same == len(EXPECTED)


@pytest.mark.parametrize("case", FILES)
def test_nothing_is_proposed_unless_somebody_asks(tmp_path, case):
    report = imported(draft(), tmp_path, *FILES[case])
    assert report.problems and not report.columns and not Prompt.objects.exists()


def test_names_of_heval_need_no_mapping(tmp_path):
    rows = [
        ["prompt_key", "prompt_text", "output:ada", "domain"],
        ["p1", "Write.", "A text that is long enough to be one.", "x"],
    ]
    report = imported(draft(), tmp_path, "own.csv", csv_of(rows), proposes_columns=True)
    assert report.is_written and not report.is_mapped
    assert [(one["column"], one["role"]) for one in report.columns] == [(name, name) for name in rows[0]]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            ("id", "question", "gpt-4o", "my-model"),
            "prompt_key=id prompt_text=question output:gpt-4o=gpt-4o output:my-model=my-model",
        ),
        (
            ("id", "instruction", "reference", "mine"),
            "prompt_key=id prompt_text=instruction output:reference=reference output:mine=mine",
        ),
        (("uuid", "source", "hyp", "category"), "prompt_key=uuid source=source output:hyp=hyp domain=category"),
        (("number", "first-words", "model-a", "lang"), "prompt_text=first-words output:model-a=model-a language=lang"),
    ],
)
def test_a_wide_file_with_an_id(tmp_path, header, expected):
    kinds = {"id": "k{}", "uuid": "k{}", "number": "7", "category": "news", "lang": "en"}
    rows = [[kinds.get(name, f"{name} has a long text here, of {{}}").format(n) for name in header] for n in range(4)]
    report = imported(draft(), tmp_path, "own.csv", csv_of([list(header), *rows]), proposes_columns=True)
    assert not report.problems
    found = {f"{one['role']}={one['column']}" for one in report.columns if one["role"]}
    assert found == set(expected.split())
    assert report.columns[1]["examples"] == [rows[n][1] for n in range(3)]


def test_equal_prompts_are_told_apart_and_the_next_import_finds_them(tmp_path):
    study = draft()
    rows = [
        ["prompt", "ada"],
        *(["Write a short story about the sea.", f"The story number {n} is about the sea."] for n in range(3)),
    ]
    imported(study, tmp_path, "own.csv", csv_of(rows), proposes_columns=True)
    key = key_from_text(rows[1][0])
    assert sorted(study.prompts.values_list("key", flat=True)) == [key, f"{key}-2", f"{key}-3"]
    more = [[*row, f"Another system wrote this about {n}."] for n, row in enumerate(rows)]
    more[0][-1] = "bo"
    assert imported(study, tmp_path, "own.csv", csv_of(more), proposes_columns=True).counts["prompts"].new == 0
    assert study.prompts.count() == 3 and len(outputs(study)) == 6


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        (("=a=b", "c"), {"a b", "c"}),
        (("gpt output", "gpt response"), {"gpt", "gpt response"}),
        (("x" * 150, "c"), {"x" * 100, "c"}),
        (("==", "c"), {"system", "c"}),
    ],
)
def test_every_column_of_texts_is_a_system_of_its_own(tmp_path, headers, names):
    study = draft()
    report = imported(study, tmp_path, "own.csv", csv_of(wide(("prompt", *headers))), proposes_columns=True)
    assert report.is_written, list(report.problems)
    assert {system for system, _ in outputs(study)} == names


def test_no_output_is_lost_that_the_first_row_does_not_have(tmp_path):
    """Objects of JSON lines may have other keys than the first one, also after the rows at which a proposal looks."""
    rows = [
        {"question": f"Question number {n} is this one?", "ada": f"A long answer of ada to number {n}."}
        for n in range(400)
    ]
    for n in (1, 399):
        rows[n]["bo"] = f"A long answer of bo to number {n}."
    study = draft()
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    report = imported(study, tmp_path, "own.jsonl", data, proposes_columns=True)
    assert report.is_written and len(outputs(study)) == 402
    given = draft()
    imported(given, tmp_path, "own.jsonl", data, columns=("prompt_text=question", "output:ada=ada", "output:bo=bo"))
    assert outputs(given) == outputs(study)


def test_a_row_without_key_and_text_is_named(tmp_path):
    rows = wide()
    rows[2][0] = " "
    report = imported(draft(), tmp_path, "own.csv", csv_of(rows), proposes_columns=True)
    assert [(problem.row, problem.column) for problem in report.problems] == [(3, "prompt_key")]


def test_a_mapping_that_is_given_is_used_as_it_is(tmp_path):
    study = draft()
    columns = ("prompt_text=prompt", "output:A=gpt-4o")
    report = imported(study, tmp_path, "own.csv", csv_of(wide()), columns=columns)
    assert report.is_written and {system for system, _ in outputs(study)} == {"A"}
    assert "my-model" in [
        example for finding in report.findings if finding.kind == "ignored_columns" for example in finding.examples
    ]
    report = imported(draft(), tmp_path, "own.csv", csv_of(wide()), columns=("prompt_text=prompts",))
    assert "no column prompts, which is mapped; the columns found are: prompt, gpt-4o, my-model" in str(
        report.problems.first[0]
    )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["prompt"], "maps no column"),
        (["colour=x"], "maps no column"),
        (["output:=x"], "maps no column"),
        (["text=x", "system=X"], "has two roles"),
        (["text=x", "text=y"], "Two columns have the role"),
    ],
)
def test_a_wrong_mapping_is_refused(columns, message):
    with pytest.raises(SettingsRefused, match=message):
        parse_mapping(columns)


# The page


def upload(client, study, name, data):
    return client.post(
        reverse("import", args=[study.pk]),
        {"file": SimpleUploadedFile(name, data), "creates_systems": "on", "max_length_difference": "1"},
        follow=True,
    )


def test_the_page_shows_roles_that_can_be_changed():
    owner = user("owner")
    client = logged_in(owner)
    study = drafts.create_draft_with_default_arm(Study(title="own"), owner)
    response = upload(client, study, "own.csv", csv_of(wide()))
    page = response.content.decode()
    assert "What each column is" in page and "outputs of the system “gpt-4o”" in page and QUESTIONS[0] in page
    assert page.count('<select name="role"') == 3 and "Import into the study" in page
    assert page.count('name="named" maxlength') == 2 and page.count('name="named"') == 3
    address = response.redirect_chain[-1][0]
    changed = client.post(
        address, {"columns": "1", "creates_systems": "on", "role": ["prompt_text", "output:gpt-4o", ""]}, follow=True
    ).content.decode()
    assert "Import into the study" in changed
    twice = client.post(address, {"columns": "1", "creates_systems": "on", "role": ["prompt_text", "text", "text"]})
    assert twice.status_code == 400 and "Two columns have the role “text”" in twice.content.decode()
    only = client.post(
        address, {"columns": "1", "creates_systems": "on", "role": ["prompt_text", "", ""]}, follow=True
    ).content.decode()
    assert "The file has prompts and no outputs." in only and "Import only the prompts" in only
    roles = ["prompt_text", "output:gpt-4o", "output:my-model"]
    sent = {"columns": "1", "creates_systems": "on", "role": roles, "named": ["", " the first ", ""]}
    assert "the first" in client.post(address, sent, follow=True).content.decode()
    without = client.post(address, {"columns": "1", "role": roles}, follow=True).content.decode()
    assert "the study has no system “gpt-4o”" in without and "Add systems that the study does not have yet" in without
    client.post(address, {"columns": "1", "creates_systems": "on", "role": roles})
    done = client.post(address, {"confirm": "1"}, follow=True).content.decode()
    assert "The whole file was imported" in done and outputs(study) == EXPECTED


def test_import_with_changed_columns_reads_the_file_again():
    owner = user("owner")
    client, study = logged_in(owner), drafts.create_draft_with_default_arm(Study(title="own"), owner)
    address = upload(client, study, "own.csv", csv_of(wide())).redirect_chain[-1][0]
    sent = {"confirm": "1", "creates_systems": "on", "named": ["", "gpt-4o", "my-model"]}
    sent |= {"role": ["prompt_text", "output:gpt-4o", ""], "human": ["gpt-4o"]}
    asked = client.post(address, sent, follow=True).content.decode()
    assert "You changed what the columns are, so heval read the file again. Check it, then import." in asked
    assert not study.systems.exists() and "Import into the study" in asked
    assert re.search(r'name="human" value="gpt-4o" checked', asked), "a tick is not lost"
    done = client.post(address, sent, follow=True).content.decode()
    assert "The whole file was imported" in done and "You changed" not in done
    assert [(one.name, one.is_human) for one in study.systems.all()] == [("gpt-4o", True)]
    # Another name, and systems that may not be added, are changes too.
    address = upload(client, study, "own.csv", csv_of(wide())).redirect_chain[-1][0]
    roles = ["prompt_text", "output:gpt-4o", "output:my-model"]
    for changed in ({"named": ["", "gpt-4o", "ours"], "creates_systems": "on"}, {"named": ["", "gpt-4o", "ours"]}):
        page = client.post(address, {"confirm": "1", "role": roles} | changed, follow=True).content.decode()
        assert "You changed what the columns are" in page and study.systems.count() == 1


def test_a_mapping_is_used_again_in_its_study_and_its_clones(tmp_path):
    study, columns = draft(), ("prompt_text=prompt", "output:first=gpt-4o", "output:second=my-model")
    imported(study, tmp_path, "own.csv", csv_of(wide()), columns=columns)
    again = imported(study, tmp_path, "next.csv", csv_of(wide()), proposes_columns=True)
    assert again.mapping == list(columns) and not again.has_changes
    said = " ".join(one.text for one in again.findings)
    assert "The columns are read as in this study's import of “own.csv”." in said
    other = imported(draft(), tmp_path, "next.csv", csv_of(wide()), proposes_columns=True)
    assert other.mapping[1] == "output:gpt-4o=gpt-4o", "another study has nothing to do with this one"
    clone = clone_study(study, None, has_texts=False)
    assert imported(clone, tmp_path, "next.csv", csv_of(wide()), proposes_columns=True).mapping == list(columns)
    fewer = imported(study, tmp_path, "fewer.csv", csv_of([row[:2] for row in wide()]), proposes_columns=True)
    assert fewer.mapping == ["prompt_text=prompt", "output:gpt-4o=gpt-4o"]


def test_the_page_names_a_mapping_that_it_uses_again_and_what_it_left_out():
    owner = user("owner")
    client, study = logged_in(owner), drafts.create_draft_with_default_arm(Study(title="own"), owner)
    address = upload(client, study, "own.csv", csv_of(wide())).redirect_chain[-1][0]
    sent = {"confirm": "1", "creates_systems": "on", "role": ["prompt_text", "output:gpt-4o", ""]}
    for _ in range(2):
        client.post(address, sent)
    response = upload(client, study, "again.csv", csv_of(wide()))
    page, address = response.content.decode(), response.redirect_chain[-1][0]
    assert "this study&#x27;s import of “own.csv”" in page and page.count("import of “own.csv”") == 1
    assert "heval did not read the column “<bdi>my-model</bdi>”" in page and "everything in this file" not in page
    page = client.post(address, {"anew": "1"}, follow=True).content.decode()
    assert "import of “own.csv”" not in page and "outputs of the system “my-model”" in page
    assert "Import into the study" in page and "heval did not read" not in page
    another = drafts.create_draft_with_default_arm(Study(title="another"), owner)
    page = upload(client, another, "third.csv", csv_of(wide())).content.decode()
    assert "own.csv" not in page and "outputs of the system “my-model”" in page


def test_notes_and_texts_are_said_once_and_before_the_button():
    owner = user("owner")
    study = drafts.create_draft_with_default_arm(Study(title="own"), owner)
    rows = [["question", "ada", "bo"]]
    rows += [
        [
            f"What is number {n} about, and why?",
            f"It is {n}, as everybody here knows.",
            f"It is {n}, and that is so. " * 9,
        ]
        for n in range(30)
    ]
    page = upload(logged_in(owner), study, "own.csv", csv_of(rows)).content.decode()
    notes, button, _ = page.partition('name="confirm"')
    assert "<bdi>Words: " in notes and button and "<bdi>Characters: " not in page
    columns = notes.partition("What each column is")[2].partition("Do these texts")[0]
    assert "What is number 1 about" in columns and "It is" not in columns


def test_the_page_has_no_row_of_zeros_and_no_note_that_repeats_it():
    owner = user("owner")
    study = drafts.create_draft_with_default_arm(Study(title="own"), owner)
    page = upload(logged_in(owner), study, "own.csv", csv_of(wide())).content.decode()
    assert '<th scope="row">outputs</th>' in page and '<th scope="row">batches</th>' not in page
    assert "Written by a person" in page and "Systems that will be added" not in page


def test_three_outputs_of_each_new_system_are_drawn(tmp_path):
    rows = [["prompt", "ada", "bo"]]
    rows += [[f"Question {n}, which is long enough?", f"Ada says {n} in words.", f"Bo says {n}."] for n in range(40)]
    columns = ("prompt_text=prompt", "output:ada=ada", "output:bo=bo")
    study = draft()
    report = imported(study, tmp_path, "own.csv", csv_of(rows), columns=columns, is_dry_run=True)
    stored = dict(study.prompts.values_list("key", "text"))
    assert not stored and set(report.samples) == {"ada", "bo"}
    again = imported(study, tmp_path, "own.csv", csv_of(rows), columns=columns)
    assert again.samples == report.samples, "a person confirms what they saw"
    said = {text for texts in report.samples.values() for _, text in texts}
    assert len(said) == 6 and said <= {cell for row in rows for cell in row}
    assert [row[1:] for row in report.samples["ada"]] != [[row[1]] for row in rows[1:4]], "not simply the first ones"
    third = imported(study, tmp_path, "own.csv", csv_of(rows), columns=columns)
    assert not third.samples, "known systems were looked at before"


def test_texts_of_a_systems_that_a_template_named_are_drawn_too(tmp_path):
    owner = user("owner")
    client, study = logged_in(owner), drafts.create_draft_with_default_arm(Study(title="own"), owner)
    study.systems.create(name="gpt-4o", is_human=True)
    response = upload(client, study, "own.csv", csv_of(wide()))
    page = response.content.decode()
    assert all(f"<h3><bdi>{name}</bdi></h3>" in page for name in ("gpt-4o", "my-model"))
    assert 'by a person<span class="heard">: my-model' in page and 'by a person<span class="heard">: gpt-4o' not in page
    client.post(response.redirect_chain[-1][0], {"confirm": "1"})
    assert study.systems.get(name="gpt-4o").is_human and study.systems.count() == 2


def test_an_output_has_the_same_chance_to_be_looked_at(tmp_path):
    rows = [["prompt", "ada"], *([f"Question {n}, which is long enough?", f"{n}"] for n in range(12))]
    columns = ("prompt_text=prompt", "output:ada=ada")
    seen = Counter()
    for n in range(200):
        report = imported(draft(), tmp_path, f"{n}.csv", csv_of([*rows, [f"Another prompt {n}", "x"]]), columns=columns)
        seen.update(text for _, text in report.samples["ada"])
    assert len(seen) == 13 and min(seen.values()) >= 25 and max(seen.values()) <= 70, seen


@pytest.mark.parametrize("mark", ["\t", ","])
def test_rows_are_pasted_from_a_spreadsheet(mark):
    owner = user("owner")
    client = logged_in(owner)
    study = drafts.create_draft_with_default_arm(Study(title="own"), owner)
    sent = {"pasted": csv_of(wide(), mark).decode(), "creates_systems": "on", "max_length_difference": "1"}
    address = client.post(reverse("import", args=[study.pk]), sent, follow=True).redirect_chain[-1][0]
    client.post(address, {"confirm": "1"})
    assert outputs(study) == EXPECTED
    for both in ({}, {"pasted": " \n"}, sent | {"file": SimpleUploadedFile("own.csv", csv_of(wide()))}):
        refused = client.post(reverse("import", args=[study.pk]), both)
        assert refused.status_code == 400 and "Use one of the two." in refused.content.decode()


def test_a_sheet_is_chosen_on_the_page():
    owner = user("owner")
    client = logged_in(owner)
    study = drafts.create_draft_with_default_arm(Study(title="own"), owner)
    data = workbook({"Notes": [["Made in May"]], "Data": wide()})
    response = upload(client, study, "own.xlsx", data)
    page = response.content.decode()
    assert "Choose a sheet" in page and '<button name="sheet" value="Data">' in page
    address = response.redirect_chain[-1][0]
    page = client.post(address, {"sheet": "Data"}, follow=True).content.decode()
    assert "Do these texts belong to these systems?" in page
    client.post(address, {"confirm": "1", "human": ["my-model", "nobody"]})
    assert outputs(study) == EXPECTED
    assert dict(study.systems.values_list("name", "is_human")) == {"gpt-4o": False, "my-model": True}


# The command


def test_the_command_takes_a_sheet_and_human_authors(tmp_path):
    user("ola")
    path = tmp_path / "own.xlsx"
    path.write_bytes(workbook({"Notes": [["Made in May"]], "Data": wide()}))
    names = ["prompt_text=prompt", "output:gpt-4o=gpt-4o", "output:ann=my-model"]
    how = {"create_systems": True, "owner": "ola", "map": names, "human": ["ann"]}
    with pytest.raises(SystemExit):
        call_command("import_study", "new", str(path), **how)
    with pytest.raises(SystemExit):
        call_command("import_study", "new", str(path), sheet="Date", **how)
    call_command("import_study", "new", str(path), sheet="Data", **how)
    assert dict(Study.objects.get().systems.values_list("name", "is_human")) == {"gpt-4o": False, "ann": True}


def test_the_command_prints_the_mapping_that_is_missing(tmp_path):
    user("ola")
    path = tmp_path / "own.csv"
    path.write_bytes(csv_of(wide()))
    with pytest.raises(CommandError) as refused:
        call_command("import_study", "new", str(path), create_systems=True, owner="ola")
    text = str(refused.value)
    assert "--map prompt_text=prompt --map output:gpt-4o=gpt-4o --map output:my-model=my-model" in text
    assert not Study.objects.exists()
    options = text.partition("add: ")[2].split()[1::2]
    call_command("import_study", "new", str(path), create_systems=True, owner="ola", map=options)
    assert outputs(Study.objects.get()) == EXPECTED


def test_a_file_of_prompts_alone_must_be_meant(tmp_path):
    user("ola")
    path = tmp_path / "own.csv"
    path.write_bytes(b"prompt_key,prompt_text\np1,Write.\n")
    with pytest.raises(CommandError, match="has prompts and no outputs. Add --only-prompts"):
        call_command("import_study", "new", str(path), owner="ola")
    call_command("import_study", "new", str(path), owner="ola", only_prompts=True)
    assert Prompt.objects.get().key == "p1"


def test_a_name_that_rows_write_in_two_ways_is_one_column(tmp_path):
    rows = [
        {name: QUESTIONS[n], "gpt": f"An answer to question {n}."} for n, name in enumerate(("question", "Question "))
    ]
    path = tmp_path / "own.jsonl"
    path.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode())
    study = Study.objects.create(title="own")
    report = import_stimuli_file(study, path, by=None, options=Options(creates_systems=True, proposes_columns=True))
    assert report.is_written and set(study.prompts.values_list("text", flat=True)) == set(QUESTIONS[:2])
