"""Answers that were given elsewhere: read, held against the study's own pages, stored with their origin, and distinguished everywhere."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from analysis.data.exports import csv_blocks, jsonl_blocks_with_summary_line
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report, default_origins
from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Annotator, Assignment, Response
from annotators.places.monitor import count_people_over_time, count_places_by_arm, progress_by_study
from studies.design.serialization import frozen_design_mismatch_text
from studies.imports.tables import StudyChanged, run
from studies.models import Design, Item, Job, Study
from studies.services import jobs, lifecycle
from tests import builders
from tests.builders import add_choice, add_humanlike, add_rating, add_spa, add_survey, draft_study, user

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

HEAD = "annotator,prompt_key,shown:A,shown:B,chosen,time\n"
CHOICES = (
    HEAD
    + "w1,p002,alpha,beta,beta,2021-05-17T15:52:44Z\n"
    + "w1,p010,beta,alpha,beta,2021-05-17T15:50:00Z\n"
    + "w2,p002,beta,alpha,alpha,2021-05-18T10:00:00+02:00\n"
)


def written(tmp_path: Path, text: str, name="answers.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def choice_draft(**settings) -> Study:
    study = draft_study(
        systems=("alpha", "beta"), prompts=12, owner=user(), consent="", public_title="", contact="", minutes=None
    )
    add_choice(study, strategy="any", stopping="none", **settings)
    return study


def again(study: Study) -> Study:
    return Study.objects.get(pk=study.pk)


def words(report) -> str:
    return " | ".join(str(problem) for problem in report.problems)


def test_a_draft_with_answers_is_frozen_closed_and_never_open(tmp_path):
    study = choice_draft()
    path = written(tmp_path, CHOICES)
    look = import_answers_and_close_draft(study, path, by=None, is_dry_run=True)
    assert {kind: count.new for kind, count in look.counts.items()} == {"annotators": 2, "items": 2, "answers": 3}
    assert "freezes its design and closes it" in str(look.findings) and again(study).is_draft and not look.is_written
    report = import_answers_and_close_draft(study, path, by=user(), expected_outcome=look.outcome())
    study = again(study)
    assert (
        report.is_written
        and study.state == "closed"
        and study.open_to == 0
        and frozen_design_mismatch_text(study) == ""
    )
    assert (
        study.audit_events.filter(verb="freeze").exists() and study.audit_events.filter(verb="import answers").exists()
    )
    one, two = study.assignments.order_by("pk")
    design, job = Design.objects.get(study=study), Job.objects.get(study=study, kind="import")
    assert {(a.origin, a.design, a.source, a.batch.origin) for a in (one, two)} == {
        ("imported", design, job, "answered")
    }
    assert (one.batch.claimed, one.batch.wanted, job.arguments["filename"]) == (1, 1, "answers.csv")
    # Each in the order in which it was said, under the letters of the screen, at its time.
    said = [
        (r.item.prompt.key, r.chosen.output.system.name, r.label, r.position, r.received_at)
        for r in one.responses.order_by("position")
    ]
    assert said == [
        ("p010", "beta", "A", 1, datetime(2021, 5, 17, 15, 50, tzinfo=UTC)),
        ("p002", "beta", "B", 2, datetime(2021, 5, 17, 15, 52, 44, tzinfo=UTC)),
    ]
    assert two.submitted_at == datetime(2021, 5, 18, 8, 0, tzinfo=UTC) and two.responses.get().label == "B"
    assert not Annotator.objects.filter(external_id__contains="w1").exists()
    # The same again changes nothing; p2 comes before p10.
    assert (
        not import_answers_and_close_draft(study, path, by=None).has_changes
        and Response.objects.filter(assignment__study=study).count() == 3
    )
    numbered = list(Item.objects.filter(study=study).order_by("number").values_list("number", "prompt__key"))
    assert numbered == [(1, "p002"), (2, "p010")]
    # More of the same people later: assignments of their own.
    more = import_answers_and_close_draft(
        study, written(tmp_path, CHOICES + "w1,p003,alpha,beta,alpha,2021-05-19T10:00:00Z\n"), by=None
    )
    assert (more.counts["answers"].new, more.counts["answers"].same, more.counts["annotators"].same) == (1, 3, 2)
    assert (
        list(study.assignments.order_by("pk").values_list("ordinal", flat=True)) == [1, 1, 2]
        and frozen_design_mismatch_text(study) == ""
    )
    # What was said is never said otherwise.
    other = import_answers_and_close_draft(
        study, written(tmp_path, HEAD + "w1,p002,alpha,beta,alpha,2021-05-17T15:52:44Z\n"), by=None
    )
    assert "another answer of “w1” to this is already stored" in words(other) and not other.is_written
    with pytest.raises(lifecycle.ActionRefused):
        lifecycle.request_launch(study, by=None)


def test_imported_answers_are_distinguished(tmp_path, client):
    study = choice_draft()
    import_answers_and_close_draft(study, written(tmp_path, CHOICES), by=user())
    study = again(study)
    progress = progress_by_study([study.pk])[study.pk]
    assert (progress.submitted, progress.imported, progress.last_submitted_at) == (0, 2, None)
    assert count_places_by_arm(study)[0].submitted == 0 and count_people_over_time(study) is None
    assert default_origins(study) == ["imported"]
    result = build_report(study, {"resamples": 99})
    assert result["parameters"]["origins"] == ["imported"] and result["flow"]["origins"] == {"imported": 2}
    assert not result["confirmatory"]["is_confirmatory"] and "imported answers" in result["confirmatory"]["reasons"][0]
    assert "was frozen after the imported answers had been collected" in result["methods"][0]
    assert "before answers came" not in " ".join(result["methods"])
    (source,) = result["data"]["sources"]
    assert (source["filename"], source["assignments"], len(source["sha256"])) == ("answers.csv", 2, 64)
    assert build_report(study, {"resamples": 99, "origins": ["live"]})["n"]["submitted"] == 0
    lines = b"".join(csv_blocks("responses", Selection(study))).decode().splitlines()
    origin = lines[0].split(",").index("origin")
    assert [line.split(",")[origin] for line in lines[1:]] == ["imported"] * 3
    table = b"".join(csv_blocks("assignments", Selection(study))).decode().splitlines()
    assert {line.split(",")[table[0].split(",").index("seconds")] for line in table[1:]} == {""}
    client.force_login(user())
    assert "and 2 imported" in client.get(reverse("admin:studies_study_changelist")).content.decode()
    page = client.get(reverse("analyses", args=[study.pk])).content.decode()
    assert 'value="imported" id="id_origins_2" checked' in page, page
    rest = client.get(f"/api/v1/studies/{study.code}/assignments/")
    assert {row["origin"] for row in rest.json()["results"]} == {"imported"}


def test_all_protocols_take_what_their_pages_ask(tmp_path):
    study = draft_study(systems=("alpha", "beta"), prompts=4, owner=user())
    spa = add_spa(study, position=1, m=2)
    rating = add_rating(study, position=2, reuses=spa, m=1)
    rating.questions.update(skip_reasons=[{"key": "cannot", "label": "Cannot judge"}])
    add_humanlike(study, position=3, m=2)
    boxes = {"kind": "multiple", "options": [{"key": "a", "label": "A"}, {"key": "b", "label": "B"}]}
    survey = [{"key": "seen", "text": "Which?", "scale": boxes}, builders.COMMENT]
    add_survey(study, position=4, questions=survey)
    rows = [
        {"question": "beta-alpha", "value": 70, "label": "BA"},
        {"question": "alpha-beta", "value": "35.0"},
        {
            "question": "overall",
            "prompt_key": "p001",
            "system": "alpha",
            "value": 4,
            "shown:A": "beta",
            "shown:B": "alpha",
        },
        {"question": "overall", "prompt_key": "p001", "system": "beta", "skip_reason": "cannot"},
        {"question": "source", "prompt_key": "p002", "system": "beta", "value": 1},
        {"question": "why", "prompt_key": "p002", "system": "beta", "text": "It rambles."},
        {"question": "seen", "choice": "a", "value": 1},
        {"question": "seen", "choice": "b", "value": 0},
        {"question": "comment", "text": "=SUM(1)"},
    ]
    lines = "".join(json.dumps({"annotator": "w1"} | row) + "\n" for row in rows)
    path = written(tmp_path, lines, "answers.jsonl")
    report = import_answers_and_close_draft(study, path, by=None)
    assert report.is_written, words(report)
    stored = {(r.question.key, r.slot): r for r in Response.objects.filter(assignment__study=study)}
    by_key = {key: r for (key, _), r in stored.items()}
    assert len(stored) == 9 and by_key["alpha-beta"].value == Decimal(35) and by_key["beta-alpha"].label == "BA"
    alpha = next(r for r in stored.values() if r.question.key == "overall" and r.value == 4)
    assert (alpha.label, alpha.exposure.output.system.name, alpha.item.section) == ("B", "alpha", spa)
    assert by_key["why"].text == "It rambles." and by_key["why"].item.section.protocol == "humanlike"
    assert {(r.choice, r.value) for r in stored.values() if r.question.key == "seen"} == {("a", 1), ("b", 0)}
    assert not import_answers_and_close_draft(again(study), path, by=None).has_changes
    changed = lines.replace('"choice": "b", "value": 0', '"choice": "b", "value": 1')
    assert "another answer" in words(
        import_answers_and_close_draft(again(study), written(tmp_path, changed, "b.jsonl"), by=None)
    )


def test_a_follow_up_is_only_taken_after_its_answer(tmp_path):
    study = draft_study(systems=("alpha", "beta"), prompts=4)
    add_humanlike(study)
    head = "annotator,question,prompt_key,system,value,text\n"
    wrong = written(tmp_path, head + "w1,source,p001,beta,4,\nw1,why,p001,beta,,It rambles.\n")
    assert "row 3, column “question”: “why” is not asked after" in words(
        import_answers_and_close_draft(study, wrong, by=None)
    )


def test_the_files_own_column_names(tmp_path):
    study = choice_draft()
    text = "worker,pair_id,model_a,model_b,choice,chosen_model,work_seconds\nw1,p001,alpha,beta,B,beta,7\nw2,p001,beta,alpha,B,alpha,9\n"
    path = written(tmp_path, text)
    said = [
        "annotator=worker",
        "prompt_key=pair_id",
        "shown:A=model_a",
        "shown:B=model_b",
        "label=choice",
        "chosen=chosen_model",
    ]
    report = import_answers_and_close_draft(study, path, by=None, options=Options.from_texts(said))
    assert report.is_written, words(report)
    assert [f.examples for f in report.findings if f.kind == "ignored_columns"] == [("work_seconds",)]
    assert set(Response.objects.values_list("label", flat=True)) == {"B"}
    # Without times nobody knows when, or in which order.
    assert set(Response.objects.values_list("position", flat=True)) == {None}
    # The letter alone names what was chosen, where the file says what stood there.
    other = choice_draft()
    letters_only = Options.from_texts(said[:-1], left_out=("chosen_model",))
    assert import_answers_and_close_draft(other, path, by=None, options=letters_only).is_written
    assert {r.chosen.output.system.name for r in Response.objects.filter(assignment__study=other)} == {"alpha", "beta"}


def test_withdrawn_and_erased_answers_do_not_come_back(tmp_path):
    from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts

    study = choice_draft()
    import_answers_and_close_draft(study, written(tmp_path, CHOICES), by=None)
    withdraw_annotator_and_erase_texts(Assignment.objects.filter(study=study).order_by("pk").first())
    report = import_answers_and_close_draft(again(study), written(tmp_path, CHOICES), by=None)
    assert not report.has_changes and [f.kind for f in report.findings if f.kind == "gone"] == ["gone"]


@pytest.mark.parametrize("state", ["launched", "paused", "closing"])
def test_never_beside_answers_that_still_come_in(tmp_path, state, client):
    study = builders.choice_study(by=user())
    if state == "paused":
        lifecycle.pause(study, by=None)
    if state == "closing":
        lifecycle.start_closing(study, by=None)
    with pytest.raises(lifecycle.ActionRefused, match="A study that collects answers cannot import others"):
        import_answers_and_close_draft(again(study), written(tmp_path, CHOICES), by=None)
    client.force_login(user())
    address = reverse("import_answers", args=[study.pk])
    assert "A study that collects answers cannot import others" in client.get(address).content.decode()
    assert client.post(address).status_code == 409


def test_never_beside_answers_of_the_studys_own(tmp_path):
    study = builders.choice_study()
    Assignment.objects.create(
        study=study,
        batch=study.batches.first(),
        annotator=Annotator.objects.create(pool="p", external_id="x"),
        design=study.designs.get(),
    )
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    with pytest.raises(lifecycle.ActionRefused, match="The study has collected answers, so it cannot import others"):
        import_answers_and_close_draft(again(study), written(tmp_path, CHOICES), by=None)


def test_a_study_that_cannot_be_read_is_not_frozen(tmp_path):
    study = choice_draft()
    study.sections.get().questions.update(scale={"kind": "stars"})
    study = again(study)
    report = import_answers_and_close_draft(study, written(tmp_path, CHOICES), by=None)
    assert "The scale 'stars' does not exist" in words(report) and again(study).is_draft
    with pytest.raises(lifecycle.NotReady):
        lifecycle.freeze_and_close(study, by=None)


def test_nothing_is_written_where_the_study_moved_on(tmp_path):
    study = choice_draft()
    look = import_answers_and_close_draft(study, written(tmp_path, CHOICES), by=None, is_dry_run=True)
    import_answers_and_close_draft(study, written(tmp_path, CHOICES.replace("w2", "w3")), by=None)
    with pytest.raises(StudyChanged):
        import_answers_and_close_draft(
            again(study), written(tmp_path, CHOICES), by=None, expected_outcome=look.outcome()
        )


def test_the_pages_look_first_then_write(client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = choice_draft()
    client.force_login(user())
    address = reverse("import_answers", args=[study.pk])
    page = client.get(address).content.decode()
    assert "freezes its design and closes it" in page and "Which is the better story?" in page
    assert address in client.get(reverse("admin:studies_study_change", args=[study.pk])).content.decode()
    text = CHOICES.replace("annotator", "worker")
    response = client.post(address, {"file": SimpleUploadedFile("a.csv", text.encode())})
    page = client.get(response.url).content.decode()
    assert "Check, then confirm" in page and "w1" in page and "Write the answers" in page and again(study).is_draft
    done = client.post(response.url, {"confirm": "1"}, follow=True).content.decode()
    assert "The whole file was imported" in done and again(study).state == "closed"
    assert Response.objects.filter(assignment__study=study).count() == 3
    client.post(response.url, {"confirm": "1"})
    assert study.audit_events.filter(verb="import answers").count() == 1


def test_a_large_file_is_a_job_that_can_be_run_twice(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setattr(run, "SMALL_BYTES", 10)
    study = choice_draft()
    upload = run.store_upload(
        [CHOICES.encode()], "a.csv", study_id=study.pk, user_id=user().pk, options={"columns": {}}, kind="answers"
    )
    run.process_or_queue_upload(study, upload, user(), is_confirmed=False)
    jobs.run_waiting_jobs()
    upload = run.get_upload(upload.token, study.pk)
    job = run.process_or_queue_upload(study, upload, user(), is_confirmed=True)
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert (job.state, job.result["is_written"], job.total) == ("done", True, 3), job.error
    assert set(study.assignments.values_list("source", flat=True)) == {job.pk}
    assert build_report(again(study), {"resamples": 99})["data"]["sources"][0]["filename"] == "a.csv"
    Job.objects.filter(pk=job.pk).update(state="waiting", ended_at=None)
    jobs.run_waiting_jobs()
    assert Response.objects.filter(assignment__study=study).count() == 3


def test_the_command(tmp_path):
    study = choice_draft()
    path = written(tmp_path, CHOICES.replace("annotator", "worker"))
    out = io.StringIO()
    arguments = ["import_study", str(study.code), str(path), "--answers", "--column", "annotator=worker"]
    call_command(*arguments, "--dry-run", stdout=out)
    assert "annotators       2 new" in out.getvalue() and again(study).is_draft
    call_command(*arguments, "--json", stdout=(out := io.StringIO()))
    assert json.loads(out.getvalue())["is_written"]
    for wrong, message in (
        (["--column", "x"], "has no role or no column. Write ROLE=COLUMN"),
        (["--map", "annotator=a", "--map", "annotator=b"], "The role “annotator” is given twice"),
        (["--column", "people=worker"], "heval has no column “people”"),
    ):
        with pytest.raises(CommandError, match=message):
            call_command("import_study", str(study.code), str(path), "--answers", *wrong)


def findings_of(report) -> dict[str, tuple[str, ...]]:
    return {finding.kind: finding.examples for finding in report.findings}


def test_people_who_may_be_one_are_a_finding_and_stay_apart(tmp_path):
    rows = "".join(f"{name},p00{n},alpha,beta,beta,\n" for n, name in enumerate(["W1", "w1", "ｗ1", "w2"]))
    report = import_answers_and_close_draft(choice_draft(), written(tmp_path, HEAD + rows), by=None, is_dry_run=True)
    assert not words(report) and report.counts["annotators"].new == 4
    assert findings_of(report)["alike_people"] == ("“W1”, “w1”, “ｗ1”",)
    plain = import_answers_and_close_draft(choice_draft(), written(tmp_path, CHOICES), by=None, is_dry_run=True)
    assert not {"alike_people", "shortened_ids", "reading"} & findings_of(plain).keys()


def test_ids_that_a_spreadsheet_shortened_are_a_finding(tmp_path):
    rows = "".join(f"1.23457E+18,p00{n},alpha,beta,beta,\n" for n in range(3))
    report = import_answers_and_close_draft(choice_draft(), written(tmp_path, HEAD + rows), by=None, is_dry_run=True)
    assert not words(report) and findings_of(report)["shortened_ids"] == ("“1.23457E+18”",)


@pytest.mark.parametrize("file_format", ["csv", "raw csv", "jsonl"])
def test_an_export_of_choices_comes_back_as_it_is(tmp_path, file_format):
    """Names that a spreadsheet would run as formulas are protected in the export, and only there."""
    study = draft_study(systems=("+rerank", "@base"), prompts=4, owner=user(), consent="", public_title="", contact="")
    study.prompts.filter(key="p001").update(key="-1")
    add_choice(study, strategy="any", stopping="none")
    text = HEAD + "w1,-1,+rerank,@base,@base,2021-05-17T15:52:44Z\nw2,p002,@base,+rerank,@base,2021-05-17T15:52:44Z\n"
    clone = draft_study(
        systems=("+rerank", "@base"), prompts=4, owner=user("b"), consent="", public_title="", contact=""
    )
    clone.prompts.filter(key="p001").update(key="-1")
    add_choice(clone, strategy="any", stopping="none")
    import_answers_and_close_draft(study, written(tmp_path, text), by=None)
    if file_format == "jsonl":
        blocks = jsonl_blocks_with_summary_line("responses", Selection(study, origins=("imported",)))
    else:
        blocks = csv_blocks("responses", Selection(study, origins=("imported",)), raw=file_format == "raw csv")
    exported = b"".join(blocks).decode()
    assert ("'@base" in exported) == (file_format == "csv")
    path = written(tmp_path, exported, "own.jsonl" if file_format == "jsonl" else "own.csv")
    report = import_answers_and_close_draft(clone, path, by=None)
    assert not words(report) and report.is_written
    kept = [
        sorted(
            Response.objects.filter(question__section__study=one).values_list(
                "item__prompt__key", "chosen__output__system__name"
            )
        )
        for one in (again(study), again(clone))
    ]
    assert kept[0] == kept[1] == [("-1", "@base"), ("p002", "@base")]


def test_an_apostrophe_of_another_file_is_kept(tmp_path):
    study = draft_study(systems=("'+rerank", "base"), prompts=4, owner=user(), consent="", public_title="", contact="")
    add_choice(study, strategy="any", stopping="none")
    text = "annotator,prompt_key,shown:A,shown:B,chosen\nw1,p001,'+rerank,base,'+rerank\n"
    assert not words(import_answers_and_close_draft(study, written(tmp_path, text), by=None, is_dry_run=True))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ('{"_end": true, "rows": 1}', ""),
        ('{"_end": true, "rows": 2}', "row 2: counts 2 rows, and 1 are above it: the file is not whole"),
        ('{"_end": true, "rows": 1}\n{"annotator": "w2"}', "row 2: ends the export, and rows follow it"),
    ],
)
def test_the_last_line_of_an_export_counts_its_rows(tmp_path, end, message):
    row = {"annotator": "w1", "prompt": "p001", "shown:A": "alpha", "shown:B": "beta", "chosen_system": "beta"}
    path = written(tmp_path, f"{json.dumps(row)}\n{end}\n", "own.jsonl")
    found = words(import_answers_and_close_draft(choice_draft(), path, by=None, is_dry_run=True))
    assert (message in found) if message else not found


def test_columns_with_the_names_of_other_tools_are_read_and_said(tmp_path):
    """As an arena of votes writes them; a column with heval's own name is never replaced."""
    text = "worker_id,item_id,model_a,model_b,winner,timestamp\nw1,p001,alpha,beta,beta,2021-05-17T15:52:44Z\n"
    study = choice_draft()
    report = import_answers_and_close_draft(study, written(tmp_path, text), by=None)
    assert not words(report) and report.is_written
    assert set(findings_of(report)["renamed_columns"]) == {
        "annotator = worker_id", "prompt_key = item_id", "shown:A = model_a", "shown:B = model_b", "chosen = winner", "time = timestamp",
    }  # fmt: skip
    response = Response.objects.get(question__section__study=study)
    assert (response.item.prompt.key, response.chosen.output.system.name) == ("p001", "beta")
    both = "annotator,worker,prompt_key,shown:A,shown:B,chosen\nann,w1,p001,alpha,beta,beta\n"
    report = import_answers_and_close_draft(choice_draft(), written(tmp_path, both), by=None, is_dry_run=True)
    assert "renamed_columns" not in findings_of(report) and findings_of(report)["ignored_columns"] == ("worker",)
