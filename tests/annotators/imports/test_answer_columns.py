"""Columns of answers are recognised by names and by what the study knows, in every shape that people's files have."""

import json
import shlex
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Response
from studies.models import Study
from tests.annotators.imports.drafts import QUALTRICS, RATED, choice_draft, rating_draft, stored
from tests.builders import add_survey, user

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def read(study: Study, tmp_path: Path, text: str, name="a.csv", *, proposes=True, **columns: str):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    options = Options(columns, proposes_columns=proposes)
    return import_answers_and_close_draft(Study.objects.get(pk=study.pk), path, by=None, options=options)


def roles(report) -> dict[str, str]:
    return {entry["column"]: entry["role"] for entry in report.columns if entry["role"]}


def words(report) -> str:
    return " | ".join(str(problem) for problem in report.problems)


@pytest.mark.parametrize(
    "header",
    [
        "annotator,prompt_key,system,value",
        "Worker ID,Item,Model Name,Rating",
        "who,about,candidate,points given",
        "x,y,z,w",
    ],
)
def test_a_row_for_each_rating_is_recognised(tmp_path, header):
    study = rating_draft()
    text = f"{header}\nann,p000,ada,4\nann,p000,curie,2\nbob,p001,ADA,5.0\n"
    report = read(study, tmp_path, text)
    assert report.is_written, (words(report), roles(report))
    assert list(roles(report).values()) == ["annotator", "prompt_key", "system", "value"] and stored(study) == RATED


def test_prompts_are_found_by_their_texts(tmp_path):
    study = rating_draft()
    prompts = list(study.prompts.order_by("key").values_list("text", flat=True))
    text = f'rater,prompt,model,score\nann,"{prompts[0]}",ada,4\nann,"{prompts[0].upper()} ",curie,2\nbob,"{prompts[1]}",ada,5\n'
    report = read(study, tmp_path, text, proposes=False)
    assert report.is_written and roles(report)["prompt"] == "prompt_text", words(report)
    assert stored(study) == RATED
    unknown = read(rating_draft(), tmp_path, text.replace(prompts[1], "Another tale."), proposes=False)
    assert "row 4, column “prompt”: no prompt of the study has the text “Another tale.”" in words(unknown)
    twice = rating_draft()
    twice.prompts.filter(key="p003").update(text=prompts[1])
    assert "is the same in several prompts" in words(read(twice, tmp_path, text, proposes=False))


@pytest.mark.parametrize(
    ("header", "winners"),
    [
        ("judge,question_id,model_a,model_b,winner", ("model_a", "model_b", "tie")),
        ("judge,question_id,model_a,model_b,winner", ("ada", "curie", "tie (bothbad)")),
        ("who,item,left,right,better", ("left", "right", "Tie")),
        ("a,b,c,d,e", ("A", "B", "tie")),
        ("winner,who,what,one,other", ("ada", "CURIE", "tie")),
    ],
)
def test_votes_are_recognised(tmp_path, header, winners):
    study = choice_draft(allows_tie=True)
    cells = [("ann", "p000", "ada", "Curie"), ("ann", "p001", "ada", "Curie"), ("bob", "p001", "Curie", "ada")]
    rows = [[*row, winner] for row, winner in zip(cells, winners, strict=True)]
    if header.startswith("winner"):
        rows = [[row[-1], *row[:-1]] for row in rows]
    report = read(study, tmp_path, "\n".join([header, *(",".join(row) for row in rows)]))
    assert report.is_written, (words(report), roles(report))
    assert stored(study) == {
        ("p000", "", "better", "ada"),
        ("p001", "", "better", "Curie"),
        ("p001", "", "better", "tie"),
    }


def test_a_column_for_each_criterion(tmp_path):
    study = rating_draft("fluent", "coherent")
    text = "rater,item,model,Fluent,coherent of the text,note\nann,p000,ada,4,good,x\nann,p000,curie,2.0,1 - very bad,\nbob,p001,ada,Very Good,,\n"
    report = read(study, tmp_path, text, proposes=False)
    assert report.is_written, words(report)
    assert roles(report) == {
        "rater": "annotator", "item": "prompt_key", "model": "system", "Fluent": "value:fluent", "coherent of the text": "value:coherent",
    }  # fmt: skip
    assert stored(study) == {
        ("p000", "ada", "fluent", 4), ("p000", "ada", "coherent", 4), ("p000", "Curie", "fluent", 2), ("p000", "Curie", "coherent", 1),
        ("p001", "ada", "fluent", 5),
    }  # fmt: skip
    assert [f.text for f in report.findings if f.kind == "empty_cells"] == ["1 empty cells are no answers."]
    again = read(study, tmp_path, text, proposes=False)
    assert not again.has_changes and again.counts["answers"].same == 5
    wrong = read(rating_draft("fluent", "coherent"), tmp_path, text.replace("2.0", "9"), proposes=False)
    assert "row 3, column “Fluent”: “9” is not a valid answer to “fluent”" in words(wrong)


TURK = (
    "HITId,HITTypeId,Title,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,ApprovalTime,WorkTimeInSeconds,"
    "Input.prompt_key,Input.system,Input.text,Answer.fluent,Answer.coherent,Approve,Reject\n"
    "H1,T,Rate,A1,W1,Approved,Mon Nov 25 11:20:01 PST 2019,Mon Nov 25 11:21:32 PST 2019,,91,p000,ada,The tale,4,5,x,\n"
    "H2,T,Rate,A2,W1,Submitted,Mon Nov 25 11:22:00 PST 2019,Mon Nov 25 11:23:01 PST 2019,,61,p000,Curie,The tale,2,1,,\n"
    "H1,T,Rate,A3,W2,Rejected,Mon Aug 22 11:20:01 PDT 2016,Mon Aug 22 11:21:00 PDT 2016,,59,p000,ada,The tale,1,1,,too fast\n"
)


def test_results_of_a_batch_of_mturk(tmp_path):
    study = rating_draft("fluent", "coherent")
    report = read(study, tmp_path, TURK, proposes=False)
    assert report.is_written, words(report)
    assert roles(report) == {
        "WorkerId": "annotator", "AssignmentStatus": "status", "SubmitTime": "time", "Input.prompt_key": "prompt_key",
        "Input.system": "system", "Answer.fluent": "value:fluent", "Answer.coherent": "value:coherent",
    }  # fmt: skip
    assert report.counts["answers"].new == 6 and report.counts["annotators"].new == 2
    (rejected,) = (finding for finding in report.findings if finding.kind == "rejected")
    assert rejected.text.startswith("1 rows are of rejected work") and rejected.examples == ("row 4",)
    times = {time.isoformat() for time in Response.objects.values_list("received_at", flat=True)}
    assert times == {"2019-11-25T19:21:32+00:00", "2019-11-25T19:23:01+00:00", "2016-08-22T18:21:00+00:00"}


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("4", 4), ("4.0", 4), ("good", 4), ("Good ", 4), ("ＧＯＯＤ", 4), ("4 - good", 4), ("4: Good", 4), ("good (4)", 4), ("4 = good", 4),
    ],
)  # fmt: skip
def test_the_words_of_a_scale_are_its_points(tmp_path, written, number):
    study = rating_draft()
    report = read(study, tmp_path, f'annotator,prompt_key,system,value\nann,p000,ada,"{written}"\n', proposes=False)
    assert report.is_written and stored(study) == {("p000", "ada", "overall", number)}, words(report)


@pytest.mark.parametrize("written", ["5 - good", "goodish", "4,0", "4_0", "４", "bad (4)", "true", "four"])
def test_other_words_are_refused(tmp_path, written):
    report = read(
        rating_draft(), tmp_path, f'annotator,prompt_key,system,value\nann,p000,ada,"{written}"\n', proposes=False
    )
    assert "row 2, column “value”" in words(report) and not report.is_written


def test_answers_are_the_words_of_options_and_of_reasons_to_skip(tmp_path):
    study = rating_draft()
    study.sections.get().questions.update(skip_reasons=[{"key": "cannot", "label": "Cannot judge"}])
    yes_no = {"kind": "choice", "options": [{"key": "y", "label": "Yes, always"}, {"key": "n", "label": "No"}]}
    add_survey(study, position=2, questions=[{"key": "reads", "text": "Do you read?", "scale": yes_no}])
    text = 'annotator,question,prompt_key,system,value\nann,overall,p000,ada,cannot judge\nann,Do you read?,,,"yes, always"\n'
    report = read(study, tmp_path, text, proposes=False)
    assert report.is_written, words(report)
    assert stored(study) == {("p000", "ada", "overall", "cannot"), ("", "", "reads", "y")}


def test_doubt_is_a_question(tmp_path, client, settings):
    """Two columns may name the annotator: nobody but a person knows which one."""
    settings.MEDIA_ROOT = tmp_path / "media"
    study = rating_draft()
    text = "left_hand,right_hand,about,candidate,points given\nann,x,p000,ada,4\nann,x,p000,curie,2\nbob,y,p000,ada,5\n"
    report = read(study, tmp_path, text)
    assert (
        "no column annotator" in words(report) and "--map annotator=COLUMN" in words(report) and not report.is_written
    )
    client.force_login(user())
    file = SimpleUploadedFile("a.csv", text.encode())
    address = client.post(reverse("import_answers", args=[study.pk]), {"file": file}).url
    page = client.get(address).content.decode()
    assert "What each column is" in page and "no column annotator" in page and 'value="value" selected' in page
    # Three examples of each column are shown.
    assert all(f"<bdi>{example}</bdi>" in page for example in ("ann", "bob", "x", "y", "p000", "4", "2", "5"))
    sent = {"columns": "1", "role": ["annotator", "", "prompt_key", "system", "value"]}
    page = client.post(address, sent, follow=True).content.decode()
    assert "Check, then confirm" in page and 'value="annotator" selected' in page
    twice = client.post(address, sent | {"role": ["annotator", "annotator", "prompt_key", "system", "value"]})
    assert twice.status_code == 400 and "The role “annotator” is chosen twice" in twice.content.decode()
    other = client.post(
        address, sent | {"role": ["", "annotator", "prompt_key", "system", "value:overall"]}, follow=True
    )
    assert 'value="value:overall" selected' in other.content.decode()
    client.post(address, {"confirm": "1"})
    assert stored(study) == {
        ("p000", "ada", "overall", 4),
        ("p000", "Curie", "overall", 2),
        ("p000", "ada", "overall", 5),
    }


def test_the_command_prints_the_mapping_that_it_would_need(tmp_path):
    study = rating_draft()
    path = tmp_path / "a.csv"
    path.write_text("who,about,candidate,points given\nann,p000,ada,4\nann,p000,curie,2\nbob,p001,ada,5\n")
    with pytest.raises(CommandError) as refused:
        call_command("import_study", str(study.code), str(path), "--answers")
    said = str(refused.value)
    assert said.endswith("--map annotator=who --map prompt_key=about --map system=candidate --map 'value=points given'")
    assert not stored(study)
    call_command(
        "import_study", str(study.code), str(path), "--answers", *shlex.split(said.partition("add: ")[2]), "--json"
    )
    assert stored(study) == RATED


def test_columns_that_later_rows_of_json_have_are_read(tmp_path):
    study = rating_draft("fluent", "coherent")
    rows = [{"rater": "ann", "item": "p000", "model": "ada", "fluent": 4}] * 1
    rows += [{"rater": "ann", "item": "p001", "model": "ada", "fluent": 3, "coherent": "good"}]
    report = read(study, tmp_path, "\n".join(map(json.dumps, rows)), "a.jsonl")
    assert report.is_written and len(stored(study)) == 3, words(report)


def test_one_row_for_each_person_as_qualtrics_exports_it(tmp_path):
    """The row below the header names the prompts (by key or text) and the systems. Labels are weaker than names: the command asks."""
    study = rating_draft()
    text = QUALTRICS.format(label="“Write the tale number 1.” as told by ada")
    report = read(study, tmp_path, text)
    assert report.is_written and report.is_mapped, (words(report), roles(report))
    assert roles(report) == {
        "ResponseId": "annotator", "status": "status", "RecordedDate": "time", "Q1_1": "value:overall@p000@ada",
        "Q1_2": "value:overall@p000@Curie", "Q2": "value:overall@p001@ada",
    }  # fmt: skip
    assert stored(study) == {
        ("p000", "ada", "overall", 4), ("p000", "Curie", "overall", 1), ("p001", "ada", "overall", 3), ("p000", "ada", "overall", 2),
    }  # fmt: skip
    kinds = {finding.kind: finding for finding in report.findings}
    assert (
        kinds["rejected"].examples == ("row 5",)
        and kinds["empty_cells"].text.startswith("1 empty")
        and "no_offset" in kinds
    )
    other = rating_draft()
    path = tmp_path / "q.csv"
    path.write_text(text)
    with pytest.raises(CommandError, match="--map value:overall@p000@ada=Q1_1"):
        call_command("import_study", str(other.code), str(path), "--answers")


@pytest.mark.parametrize(
    ("header", "answers"),
    [
        (
            "participant.code,participant.label,participant._is_bot,session.code,player.rating_p000_ada,player.rating_p000_curie",
            "4,2",
        ),
        ("Timestamp,Email Address,How good? [p000: ada],How good? [p000: Curie]", "good,bad"),
        ("id_of_person,p000 ada,p000-CURIE", "4,2.0"),
    ],
)
def test_one_row_for_each_person_by_names_of_columns(tmp_path, header, answers):
    study = rating_draft()
    before = {
        "participant": "c{n},,0,s1,",
        "Timestamp": "2024/02/28 10:0{n}:13 AM GMT+1,a{n}@x.org,",
        "id_of_person": "i{n},",
    }
    start = before[header.partition(".")[0].partition(",")[0]]
    rows = [start.format(n=n) + answers for n in range(3)]
    report = read(study, tmp_path, "\n".join([header, *rows]))
    assert report.is_written, (words(report), roles(report))
    assert report.counts["annotators"].new == 3 and report.counts["answers"].new == 6
    assert stored(study) == {("p000", "ada", "overall", 4), ("p000", "Curie", "overall", 2)}


def test_columns_of_cells_can_be_said(tmp_path):
    """As oTree writes rounds; the keys of a study may hold an equals sign."""
    study = rating_draft()
    study.prompts.filter(key="p000").update(key="a=b")
    path = tmp_path / "a.csv"
    path.write_text("participant.label,app.1.player.rating,app.2.player.rating\nw1,4,2\nw2,5,5\n")
    maps = [
        "--map",
        "value:overall@a=b@ada=app.1.player.rating",
        "--map",
        "value:overall@p001@curie=app.2.player.rating",
    ]
    call_command("import_study", str(study.code), str(path), "--answers", *maps, "--json")
    assert ("a=b", "ada", "overall", 4) in stored(study) and ("p001", "Curie", "overall", 2) in stored(study)
    unknown = ["--map", "value:overall@p9@ada=app.1.player.rating"]
    with pytest.raises(SystemExit):
        call_command("import_study", str(rating_draft().code), str(path), "--answers", *unknown)


def test_choices_of_a_row_for_each_person(tmp_path):
    study = choice_draft()
    report = read(study, tmp_path, "person,better_p000,better_p001\nann,ada,Curie\nbob,curie,ada\n")
    assert report.is_written, (words(report), roles(report))
    assert stored(study) == {("p000", "", "better", "ada"), ("p001", "", "better", "Curie"), ("p000", "", "better", "Curie"), ("p001", "", "better", "ada")}  # fmt: skip


def test_a_thousand_columns_are_read_and_one_more_is_refused(tmp_path, client, settings):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = rating_draft(prompts=500)
    names = [f"p{n:03}_{system}" for n in range(500) for system in ("ada", "curie")][:999]
    lines = [
        ",".join(["annotator", *names]),
        *(",".join([f"w{n}", *(str(1 + (n + m) % 5) for m in range(999))]) for n in range(3)),
    ]
    client.force_login(user())
    file = SimpleUploadedFile("a.csv", "\n".join(lines).encode())
    address = client.post(reverse("import_answers", args=[study.pk]), {"file": file}).url
    page = client.get(address).content.decode()
    assert "900 more columns keep what heval makes of them" in page and page.count("<select") == 100
    before = client.post(address, {"columns": "1", "role": ["annotator", *[""] * 99]}, follow=True).content.decode()
    assert "Check, then confirm" in before
    client.post(address, {"confirm": "1"})
    assert Response.objects.filter(assignment__study=study).count() == 3 * 900
    lines[0] += ",x,y"
    refused = read(rating_draft(), tmp_path, "\n".join(lines))
    assert "the header has 1,002 columns. At most 1,000 are allowed" in words(refused)
