"""Columns under the names that people give them, in every file about prompts that a study or board has already."""

import pytest

from analysis.metrics.files import ScoresFileSettings, ScoresRefused, read_scores_file
from analysis.planning.pilots import read_answers_file
from boards.services.submissions import SubmissionRefused, read_outputs_file
from studies.imports.check_files import read_test_question_file
from studies.stimuli.columns import KEY, OTHER_NAMES, OUTPUT, PERSON, SYSTEM, Columns, column_words
from studies.stimuli.rows import read_rows
from tests.builders import add_rating, draft_study, user

pytestmark = pytest.mark.django_db

ROWS = [("p1", "One."), ("p2", "Two.")]


def submission(*columns):
    text = "\n".join(",".join(cells) for cells in (columns, *ROWS))
    return read_outputs_file("outputs.csv", text.encode(), ["p1", "p2"]).texts


@pytest.mark.parametrize("name", OTHER_NAMES[KEY])
def test_a_submission_may_call_the_key_of_a_prompt_anything(name):
    assert submission(name, "output") == dict(ROWS)
    assert submission(name.upper().replace(" ", "_"), "output") == dict(ROWS)


@pytest.mark.parametrize("name", OTHER_NAMES[OUTPUT])
def test_a_submission_may_call_its_outputs_anything(name):
    assert submission("prompt", name) == dict(ROWS)


def test_a_column_of_keys_is_found_by_its_contents():
    assert submission("Nummer", "output") == dict(ROWS)
    with pytest.raises(SubmissionRefused, match="no column output"):
        submission("Nummer", "Antwort")


def test_heval_s_own_name_comes_before_other_names():
    text = b"id,prompt,output,answer\n1,p1,One.,x\n2,p2,Two.,y\n"
    assert read_outputs_file("outputs.csv", text, ["p1", "p2"]).texts == dict(ROWS)


def test_two_columns_of_keys_are_not_guessed_between():
    with pytest.raises(SubmissionRefused, match="no column prompt"):
        read_outputs_file("outputs.csv", b"a,b,output\np1,p1,One.\np2,p2,Two.\n", ["p1", "p2"])


def test_a_few_foreign_keys_are_faults_of_their_rows_and_many_are_another_column():
    rows = b"".join(b"p%d,Text.\n" % n for n in range(19))
    with pytest.raises(SubmissionRefused, match="row 21"):
        read_outputs_file("outputs.csv", b"a,output\n" + rows + b"q,Text.\n", [f"p{n}" for n in range(20)])
    with pytest.raises(SubmissionRefused, match="no column prompt"):
        read_outputs_file("outputs.csv", b"a,output\n" + rows + b"q,Text.\n" * 9, [f"p{n}" for n in range(20)])


@pytest.fixture
def study():
    study = draft_study(systems=("alpha", "beta"), prompts=2, owner=user("columns"))
    add_rating(study)
    return study


def test_scores_may_have_other_names_of_prompts_and_systems(study):
    keys = list(study.prompts.values_list("key", flat=True))
    lines = [f"{key},{name},{n}.5" for n, key in enumerate(keys) for name in ("alpha", "beta")]
    for prompt in (*OTHER_NAMES[KEY], "spalte"):
        for system in (*OTHER_NAMES[SYSTEM], "spalte 2"):
            text = "\n".join([f"{prompt},{system},metric", *lines]).encode()
            (found,) = read_scores_file(study, "scores.csv", text, ScoresFileSettings()).columns
            assert found.column == "metric" and sorted(found.by_output.values()) == [0.5, 0.5, 1.5, 1.5]


def test_columns_of_other_contents_stay_metrics(study):
    text = b"spalte,spalte 2,metric\nx,alpha,1\n"
    with pytest.raises(ScoresRefused, match="no column prompt"):
        read_scores_file(study, "scores.csv", text, ScoresFileSettings(is_partial=True))


@pytest.mark.parametrize("name", OTHER_NAMES[PERSON])
def test_a_pilot_may_call_its_people_anything(name):
    text = f"{name},prompt,preferred\nw1,p1,x\nw2,p1,y\n".encode()
    assert read_answers_file("pilot.csv", text).people == ["w1", "w2"]


@pytest.mark.parametrize("name", [*OTHER_NAMES[KEY], "spalte"])
def test_test_questions_may_have_other_names_of_prompts(study, name):
    section = study.sections.get()
    key = study.prompts.values_list("key", flat=True)[0]
    text = f"{name},answer,expected\n{key},Right.,high\n".encode()
    found = read_test_question_file(section, section.questions.get(), "questions.csv", text)
    assert not found.problems and [one.prompt for one in found.questions] == [key]


def test_each_object_of_json_is_read_by_its_own_keys():
    columns = Columns(["prompt", "output"], meanings={"prompt": KEY, "output": OUTPUT})
    rows = read_rows("x.jsonl", b'{"id": "p1", "answer": "One."}\n{"prompt": "p2", "reply": "Two."}\n', columns=columns)
    assert [row.values for row in rows] == [{"prompt": key, "output": text} for key, text in ROWS]
    assert not rows.problems


@pytest.mark.parametrize("name", ["prompt_id", "Prompt ID", "PROMPT-ID", " prompt.id ", "ｐrompt id"])
def test_the_words_of_a_column_do_not_depend_on_how_they_are_joined(name):
    assert column_words(name) == "prompt id"
