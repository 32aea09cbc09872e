"""Columns under the names that people give them, in every file about prompts that a study or board has already."""

import shlex

import pytest
from django.core.management import CommandError, call_command

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


TEXT = b"Nummer,Antwort,output\np1,One.,x\np2,Two.,y\n"


def mapped(text: bytes, *mapping: str, name="outputs.csv"):
    return read_outputs_file(name, text, ["p1", "p2"], mapping, proposes=False).texts


def test_what_only_contents_show_is_refused_with_the_mapping_that_reads_it():
    with pytest.raises(SubmissionRefused, match=r"add: --map prompt_key=Nummer") as refused:
        mapped(TEXT)
    assert len(refused.value.problems) == 1
    assert mapped(TEXT, "prompt_key=Nummer") == {"p1": "x", "p2": "y"}
    rows = b'{"Nummer": "p1", "output": "One."}\n{"Nummer": "p2", "output": "Two."}\n'
    with pytest.raises(SubmissionRefused, match=r"add: --map prompt_key=Nummer"):
        mapped(rows, name="a.jsonl")
    assert mapped(rows, "prompt=Nummer", name="a.jsonl") == dict(ROWS)


@pytest.mark.parametrize("roles", [("prompt_key", "text"), ("prompt", "output"), ("Key", "TEXT")])
def test_a_mapping_comes_before_names(roles):
    """The column “output” is not meant, and “id” would otherwise be the key."""
    text = TEXT.replace(b"Nummer", b"id,Nr. 1").replace(b"p1,", b"a,p1,").replace(b"p2,", b"b,p2,")
    assert mapped(text, f"{roles[0]}= nr. 1", f"{roles[1]}=Antwort") == dict(ROWS)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (["prompt_key"], "maps no column"),
        (["prompt_key="], "maps no column"),
        (
            ["annotator=Nummer"],
            "one of the roles prompt_key, text, is_empty|one of the roles is_empty, prompt_key, text",
        ),
        (["prompt_key=Nummer", "key=Antwort"], "again. Keep one"),
        (["prompt_key=Nummer", "text=nummer"], "again. Keep one"),
        (["prompt_key=Number"], "no column “number”, which is mapped"),
    ],
)
def test_a_wrong_mapping_is_named(mapping, message):
    with pytest.raises(SubmissionRefused, match=message):
        mapped(TEXT, *mapping)


def test_scores_are_mapped_and_chosen_by_roles(study):
    keys = list(study.prompts.values_list("key", flat=True))
    lines = [f"{key},{name},{n}.5,{n}.5,words" for n, key in enumerate(keys) for name in ("alpha", "beta")]
    text = "\n".join(["Nr,Wer,BLEU = 4,chrF,prompt", *lines]).encode()

    def read(*columns):
        return read_scores_file(study, "a.csv", text, ScoresFileSettings(columns, proposes_columns=False)).columns

    with pytest.raises(ScoresRefused, match="which is mapped"):
        read("prompt_key=number")
    with pytest.raises(ScoresRefused, match="no output for the prompt “words”"):
        read("value=chrF", "system=Wer")
    (found,) = read("prompt_key=Nr", "system=Wer", "value=BLEU = 4")
    assert found.column == "BLEU = 4" and len(found) == 4
    found = read("prompt_key=Nr", "system=Wer", "BLEU = 4", "chrF")
    assert [one.column for one in found] == ["BLEU = 4", "chrF"]
    text = text.replace(b"prompt\n", b"note\n")
    with pytest.raises(ScoresRefused, match=r"add: --map prompt_key=Nr --map system=Wer"):
        read("value=chrF")


def test_the_command_stores_scores(study, tmp_path):
    keys = list(study.prompts.values_list("key", flat=True))
    path = tmp_path / "a.csv"
    lines = [f"{key},{name},{n}.5" for n, key in enumerate(keys) for name in ("alpha", "beta")]
    path.write_text("\n".join(["Nr,Wer,BLEU 4", *lines]))
    code = str(study.code)
    with pytest.raises(CommandError) as refused:
        call_command("import_study", code, str(path), scores="1.2")
    roles = shlex.split(str(refused.value).partition("add: ")[2])
    assert roles == ["--map", "prompt_key=Nr", "--map", "system=Wer"]
    call_command("import_study", code, str(path), *roles, "--scores", "1.2", "--dry-run")
    assert not study.metrics.exists()
    call_command("import_study", code, str(path), *roles, "--scores", "1.2", "--judge", "--question", "overall")
    metric = study.metrics.get()
    assert (metric.name, metric.version, metric.kind, metric.n_scores) == ("BLEU 4", "1.2", "judge", 4)
    with pytest.raises(CommandError, match="is not a question"):
        call_command("import_study", code, str(path), *roles, scores="1.3", question="nobody")


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
