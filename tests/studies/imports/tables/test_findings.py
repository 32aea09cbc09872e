"""An import says outright what is missing, what is odd and what would change."""

import pytest

from studies.imports.tables import StudyChanged, writing
from studies.models import AuditEvent, Output, Prompt
from studies.services.lifecycle import ActionRefused
from studies.stimuli import surface
from tests.builders import launched, spa_draft
from tests.studies.imports.files import LONG, long, rows_of, sound, table, texts


def test_an_unknown_system_is_one_problem_however_often_it_occurs(study, put):
    before = rows_of(study)
    report = put(table([*LONG, long("p1", "zoe", "x"), long("p2", "zoe", "y")]))
    assert [str(problem) for problem in report.problems] == [
        "row 6, column “system”: the study has no system “zoe” (in 2 rows); correct the name, or tick “Add systems that the study does not have yet”."
    ]
    assert rows_of(study) == before
    assert sound(put(table([*LONG, long("p1", "zoe", "x")]), creates_systems=True)).counts["systems"].new == 1
    assert study.systems.filter(name="zoe").exists()


def test_an_empty_output_needs_a_word(study, put):
    rows = [long("p1", "ada", ""), long("p1", "bo", "Two.")]
    report = put(table(rows))
    assert (report.problems.first[0].row, report.problems.first[0].column) == (2, "text")
    assert "ada is empty" in str(report.problems.first[0]) and not study.prompts.exists()
    flagged = [rows[0] | {"is_empty": "true"}, rows[1]]
    report = sound(put(table(flagged), is_dry_run=True))
    assert [f.examples for f in report.findings if f.kind == "empty"] == [("ada on p1 (row 2)",)]
    sound(put(table(rows), allows_empty=True))
    assert Output.objects.get(system__name="ada").is_empty and texts(study)["ada", "p1", 0] == ""


@pytest.mark.parametrize("text", ["\u200b\u00a0", "\u0301", " \n "])
def test_what_nobody_sees_is_empty(study, put, text):
    assert "is empty" in str(put(table([long("p1", "ada", text)])).problems.first[0])


def test_a_column_of_texts_that_is_called_otherwise_makes_no_empty_outputs(study, put):
    """Empty outputs are allowed, the texts stand in a column “story”: once all of them were stored as empty."""
    report = put(b"prompt_key,prompt_text,system,story\np1,P,ada,One.\np2,P,ada,Two.\n", "t.csv", allows_empty=True)
    (problem,) = report.problems
    assert problem.row == 2 and "story" in problem.text and not study.prompts.exists()


def test_an_output_is_empty_or_has_a_text(study, put):
    report = put(table([long("p1", "ada", "A text", is_empty="yes")]))
    assert report.problems.first[0].column == "is_empty"


def test_changed_content_is_replaced_only_when_asked(study, put):
    sound(put(table(LONG)))
    before = rows_of(study)
    changed = [
        LONG[0] | {"text": "One, anew."},
        *LONG[1:2],
        *[row | {"prompt_text": "Another prompt"} for row in LONG[2:]],
    ]
    report = put(table(changed))
    assert report.problems.count == 1 and "other content" in str(report.problems.first[0]) and rows_of(study) == before
    assert (report.counts["outputs"].changed, report.counts["prompts"].changed, report.changes_count) == (1, 1, 2)
    shown = next(change for change in report.changes if change.what.startswith("ada"))
    assert (shown.row, shown.before, shown.after) == (2, "One.", "One, anew.")
    report = sound(put(table(changed), replaces_changed=True))
    assert report.is_written and texts(study)["ada", "p1", 0] == "One, anew."
    assert study.prompts.get(key="p2").text == "Another prompt"
    assert texts(study)["bo", "p2", 0] == "Four."


def test_a_change_keeps_what_the_file_does_not_say(study, put):
    row = long("p1", "ada", "x", domain="news", source="S", format="markdown", output_language="de")
    sound(put(table([row])))
    sound(put(table([long("p1", "ada", "y")]), replaces_changed=True))
    prompt, output = study.prompts.get(), Output.objects.get(system__study=study)
    assert (prompt.domain, prompt.source, output.format, output.language, output.text) == (
        "news",
        "S",
        "markdown",
        "de",
        "y",
    )


def test_only_a_draft_takes_stimuli(put):
    study = launched(spa_draft(prompts=12))
    with pytest.raises(ActionRefused, match="into a draft"):
        put(table([long("p900", "alpha", "x")]), into=study)
    assert not study.prompts.filter(key="p900").exists()


def test_what_was_confirmed_is_what_is_written(study, put):
    agreed = put(table(LONG), is_dry_run=True).outcome()
    put(table(LONG[:1]))  # somebody else was quicker
    with pytest.raises(StudyChanged, match="Check the new report"):
        put(table(LONG), agreed=agreed)
    assert Output.objects.filter(system__study=study).count() == 1
    again = put(table(LONG), is_dry_run=True)
    assert (again.counts["outputs"].new, again.counts["outputs"].same) == (3, 1)
    assert put(table(LONG), agreed=again.outcome()).is_written


def test_a_study_that_moves_while_the_file_is_read_is_left_alone(study, put, monkeypatch):
    def meddled(writer):
        Prompt.objects.create(study=study, key="by hand")
        return store(writer)

    store = writing.StimuliWriter.store
    monkeypatch.setattr(writing.StimuliWriter, "store", meddled)
    with pytest.raises(StudyChanged, match="while the file was being read"):
        put(table(LONG))
    assert not Output.objects.filter(system__study=study).exists()


@pytest.mark.parametrize(("function", "at"), [("insert_rows", 5), ("update_rows", 2)])
def test_a_failure_while_writing_leaves_no_row(study, put, monkeypatch, function, at):
    sound(put(table(LONG[:1])))
    before, events = rows_of(study), AuditEvent.objects.count()
    calls = []

    def fails(*arguments):
        calls.append(1)
        if len(calls) == at:
            raise MemoryError
        return call(*arguments)

    call = getattr(writing, function)
    monkeypatch.setattr(writing, "CHUNK", 1)  # the first prompts and outputs are written by then
    monkeypatch.setattr(writing, function, fails)
    rows = [row | {"text": f"{row['text']} Anew."} for row in LONG[:1]] + LONG[1:]
    with pytest.raises(MemoryError):
        put(table(rows), replaces_changed=True)
    assert rows_of(study) == before and AuditEvent.objects.count() == events


def test_rows_refer_to_a_prompt_given_before(study, put):
    sound(put(table([LONG[0], {"prompt_key": "p1", "system": "bo", "text": "Two."}])))
    assert study.prompts.get().text == "Prompt p1"
    report = put(table([{"prompt_key": "p9", "prompt_text": "", "system": "bo", "text": "x"}]))
    assert (
        str(report.problems.first[0])
        == "row 2, column “prompt_text”: the prompt p9 has no text here and no text in the study."
    )


@pytest.mark.parametrize("rows", [[1, 2, 3], [3, 1, 2]])
def test_blank_texts_of_all_prompts_are_one_finding_and_of_some_an_error_each(study, put, rows):
    """As in two choices between sentences, where a pair has no words of its own."""
    blank = [{"prompt_key": f"p{n}", "prompt_text": " ", "output:ada": "A.", "output:bo": "B."} for n in rows]
    report = sound(put(table(blank), is_dry_run=True))
    (finding,) = [one for one in report.findings if one.kind == "prompt_without_text"]
    assert (finding.count, report.counts["prompts"].new) == (3, 3)
    some = [row | ({"prompt_text": "Words."} if row["prompt_key"] == "p3" else {}) for row in blank]
    report = put(table(some), is_dry_run=True)
    assert [(one.row, one.column) for one in report.problems] == [
        (number, "prompt_text") for number, row in enumerate(some, 2) if row["prompt_key"] != "p3"
    ]
    assert report.problems.count == 2 and not [one for one in report.findings if one.kind == "prompt_without_text"]
    sound(put(table(blank)))
    assert study.prompts.filter(text="").count() == 3


def test_prompts_come_without_outputs_and_outputs_later(study, put):
    sound(put(b"prompt_key,prompt_text\np1,One\np2,Two\n"))
    report = sound(put(b"prompt_key,system,text\np1,ada,A.\np1,bo,B.\np2,ada,C.\n", "later.csv"))
    assert report.counts["prompts"].same == 2
    assert (report.missing, report.missing_count) == ([("p2", "bo")], 1)


def test_missing_pairs_are_listed_exactly(study, put):
    rows = [
        long(f"p{n}", system, f"{n}{system}")
        for n in range(5)
        for system in ("ada", "bo", "cy")
        if (n, system) not in {(1, "bo"), (4, "ada"), (4, "cy")}
    ]
    report = sound(put(table(rows), creates_systems=True, is_dry_run=True))
    assert report.missing == [("p1", "bo"), ("p4", "ada"), ("p4", "cy")]


def test_equal_outputs_are_reported_with_both_places(study, put):
    rows = [
        long("p1", "ada", "Same words."),
        long("p1", "bo", "Same words. "),
        long("p2", "ada", "Same words."),
        long("p2", "bo", "Other."),
    ]
    found = {f.kind: f.examples for f in sound(put(table(rows), is_dry_run=True)).findings}
    assert found["same_between_systems"] == ("ada on p1 = bo on p1 (row 3)",)
    assert found["same_within_system"] == ("ada on p1 = ada on p2 (row 4)",)


def test_what_betrays_a_system_is_said(study, put):
    rows = [
        long(f"p{n}", system, f"Text {n} {'``so`` it went' if system == 'bo' else 'so it went'}.")
        for n in range(25)
        for system in ("ada", "bo")
    ]
    report = sound(put(table(rows)))
    assert "surface:tokeniser_quotes" in {finding.kind for finding in report.findings}
    # And also where the other system is in the study already.
    later = [long(f"p{n}", "cy", f"So <b>it</b> went {n}.") for n in range(25)]
    report = put(table(later), "cy.csv", creates_systems=True, is_dry_run=True)
    assert "surface:markup" in {finding.kind for finding in report.findings}


def test_unknown_columns_are_named(study, put):
    report = sound(put(table([row | {"note": "x", "langauge": "en"} for row in LONG]), is_dry_run=True))
    assert [f.examples for f in report.findings if f.kind == "ignored_columns"] == [("langauge", "note")]


def test_words_for_a_missing_value_are_a_finding_and_stay_as_they_are(study, put):
    rows = [
        long("p1", "ada", "nan"),
        long("p1", "bo", "None"),
        long("p2", "ada", "none of them"),
        long("p2", "bo", "Two."),
    ]
    report = sound(put(table(rows)))
    (finding,) = [one for one in report.findings if one.kind == "missing_words"]
    assert (finding.count, finding.examples) == (2, ("ada on p1 (row 2)", "bo on p1 (row 3)"))
    assert texts(study)["ada", "p1", 0] == "nan" and "not changed" in finding.text


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "null", "<NA>", " n/a "])
def test_a_word_for_a_missing_value_is_no_name(study, put, word):
    report = put(table([long(word, "ada", "One."), long("p2", word, "Two.")]))
    assert [(problem.row, problem.column) for problem in report.problems] == [(2, "prompt_key"), (3, "system")]
    assert all("is a word for a missing value" in problem.text for problem in report.problems)


def test_keys_that_a_spreadsheet_shortened_are_a_finding(study, put):
    report = sound(put(table([long("1.23457E+18", "ada", "One."), long("1.23457E+18", "bo", "Two.")])))
    assert [finding.examples for finding in report.findings if finding.kind == "shortened_keys"] == [("1.23457E+18",)]


def findings(report) -> dict[str, tuple[int, tuple[str, ...]]]:
    return {one.kind: (one.count, one.examples) for one in report.findings}


def test_what_people_should_not_read_unseen_is_a_finding_and_stays(study, put):
    said = ["I'm sorry, but I can't help with that.", "I can swim. " * 5, "Write to ann@uni.edu, or to bo@example.org."]
    rows = [long(f"p{n}", "ada", text, prompt_text=f"Prompt {n}") for n, text in enumerate(said)]
    report = sound(put(table([*rows, long("q0", "bo", "Two.", prompt_text="Prompt 0")])))
    found = findings(report)
    assert found["refusals"] == (1, ("ada on p0 (row 2)",))
    assert found["personal:e-mail addresses"] == (1, ("ada on p2 (row 4)",))
    assert found["same_prompts"] == (1, ("p0 = q0 (row 5)",))
    assert "lengths" not in found and texts(study)["ada", "p2", 0] == said[2]


def test_outputs_of_odd_lengths_are_counted(put):
    words = [20] * 30 + [1, 900]
    report = sound(put(table([long(f"p{n}", "ada", "word " * n_words) for n, n_words in enumerate(words)])))
    (finding,) = [one for one in report.findings if one.kind == "lengths"]
    assert finding.count == 2 and "20 words or more. Ten times longer: 1; ten times shorter: 1." in finding.text


def test_personal_data_are_found_in_prompts_sources_and_outputs(study, put, monkeypatch):
    kinds = surface._personal_data() | {"names of cats": lambda text: "Minka" in text}
    monkeypatch.setattr(surface, "_personal_data", lambda: kinds)
    rows = [
        long("p0", "ada", "Call +49 30 901820 now.", prompt_text="Where is Minka?", source="Ask ann@uni.edu."),
        long("p1", "ada", "From 1 + 49 to 030 901820.", prompt_text="Count.", source="None."),
    ]
    found = findings(sound(put(table(rows))))
    assert {kind: found[kind] for kind in found if kind.startswith("personal:")} == {
        "personal:telephone numbers": (1, ("ada on p0 (row 2)",)),
        "personal:names of cats": (1, ("prompt p0 (row 2)",)),
        "personal:e-mail addresses": (1, ("prompt p0 (row 2)",)),
    }
