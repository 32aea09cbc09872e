"""A file of any panel: its columns are named in the link's settings, and then it does what a known panel's file does."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelSubmission, Recruitment, Verdict
from annotators.pay.decisions import create_appeal
from annotators.pay.verdict_status import work_status
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.alerts import find_panel_alerts
from annotators.recruitment.panels.reconcile import count_submissions_and_missing_by_status
from tests.admin_pages import logged_in
from tests.builders import spa_study, user
from tests.players import claimed, submitted

GENERIC = REGISTRY["generic"]
WORDS = "Completed = submitted\nPaid=approved\nGiven  back = returned\nrefused = REJECTED"
NAMED = {
    "file_person": "Person",
    "file_session": "Session",
    "file_state": "State",
    "file_words": WORDS,
    "file_code": "Code",
}
HEAD = "Person,Session,State,Code"


def read(*lines, settings=NAMED, channel="generic", ends="\n"):
    link = Recruitment(channel=channel, settings=settings)
    return REGISTRY[channel].read_export(link, ends.join(lines) + ends)


def told(seen):
    return [(one.person, one.submission, one.state, one.word, one.code) for one in seen]


# Reading


def test_the_named_columns_are_read_and_no_others():
    seen = read(
        "Mail,code,STATE,Session,Person", "a@b.c,X1,completed, s1 ,w1", "d@e.f,,PAID,s2,w2", "", "g,,Given back,s3,w3"
    )
    assert told(seen) == [
        ("w1", "s1", "submitted", "completed", "X1"),
        ("w2", "s2", "approved", "PAID", ""),
        ("w3", "s3", "returned", "Given back", ""),
    ]
    assert {one.task for one in seen} == {""} and "a@b.c" not in str(seen)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("before", ["", "\ufeff"])
def test_a_table_is_read_whatever_separates_its_cells(mark, before):
    head = HEAD.replace(",", mark)
    seen = read(before + head, mark.join([f'"w{mark}1 ""x"""', "s1", "Paid", ""]), ends="\r\n")
    assert told(seen) == [(f'w{mark}1 "x"', "s1", "approved", "Paid", "")]


def test_without_a_session_the_person_serves_and_without_a_state_all_were_sent():
    assert told(read("id;age", "w1;30", settings={"file_person": "ID"})) == [("w1", "w1", "submitted", "", "")]


def test_two_settings_may_name_one_column():
    assert told(read("id", "w1", settings={"file_person": "ID", "file_session": "Id "})) == [
        ("w1", "w1", "submitted", "", "")
    ]


def test_a_word_that_is_not_listed_is_unknown_and_an_empty_one_too():
    assert [one.state for one in read(HEAD, "w1,s1,Odd,", "w2,s2,,")] == ["unknown", "unknown"]


def test_rows_that_say_the_same_are_one():
    assert len(read(HEAD, "w1,s1,Paid,A", "w1,s1,paid,A", "w1,s2,Paid,A", "w2,s1,Paid,A")) == 3


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([""], "blank lines"),
        ([HEAD], "no row below the header"),
        (["id,State,Session", "1,2,3"], "Row 1: no column Person or Code; the columns found are: id, State, Session"),
        ([HEAD, "", "w1,,Paid,"], "Row 3, column “Session”: the cell is empty"),
        ([HEAD, "\u200b,s1,Paid,"], "Row 2, column “Person”: the cell is empty"),
        (
            [HEAD, f"{'w' * 65},s1,Paid,"],
            "Row 2, column “Person”: the cell has 65 characters, but an id has at most 64",
        ),
        ([HEAD, f"w1,{'s' * 65},Paid,"], "Row 2, column “Session”: the cell has 65 characters"),
        (
            [HEAD, "w1,s1,Paid,", "w1,s2,Paid,", "w1,s1,Completed,"],
            r"Row 4, column “State”: the submission s1 of w1 is Paid \(approved\) in row 2 and Completed \(submitted\) here",
        ),
        ([HEAD, "w1,s1"], "Row 2: has 2 cells, the header has 4"),
        ([HEAD, 'w1,s1,"Pa'], "Row 2: a quote is opened and never closed"),
        ([HEAD, "w\0,s1,Paid,"], "Row 2, column “Person”: contains a NUL character"),
        ([HEAD + ",person", "w1,s1,Paid,,w2"], "Row 1, column “person”: columns 1 and 5 have the same name"),
        (
            [HEAD, ",s1,Paid,", "w1,,Paid,", "w2"],
            r"Row 2, column “Person”: the cell is empty. Fill it in, or remove the row. There are 2 more errors like these",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_with_row_and_column(lines, words):
    with pytest.raises(ValueError, match=words):
        read(*lines)


def test_of_people_alone_two_states_are_refused_too():
    settings = {name: NAMED[name] for name in ("file_person", "file_state", "file_words")}
    with pytest.raises(
        ValueError, match=r"Row 3, column “State”: w1 is Paid \(approved\) in row 2 and refused \(rejected\) here"
    ):
        read("Person,State", "w1,Paid", "w1,refused", settings=settings)


def test_a_row_too_many_is_refused(monkeypatch):
    from annotators.recruitment.channels import exported_file
    from studies.stimuli.rows import TableLimits

    monkeypatch.setattr(exported_file, "LIMITS", TableLimits(rows=1))
    with pytest.raises(ValueError, match="more than 1 rows"):
        read(HEAD, "w1,s1,Paid,", "w2,s2,Paid,")


def test_an_id_that_connect_cannot_have_given_is_refused():
    """A column of names or of e-mail addresses, named by mistake, is not taken in."""
    with pytest.raises(ValueError, match="Row 2, column “Person”: “a@b.c” is not an id"):
        read(HEAD, "a@b.c,s100,Paid,", channel="connect")
    assert read(HEAD, "W100,s100,Paid,", channel="connect") and read(HEAD, "a@b.c,s100,Paid,")


@pytest.mark.parametrize("channel", ["generic", "connect"])
def test_a_link_that_names_no_column_takes_no_file(channel):
    link = Recruitment(channel=channel, settings={"file_person": ""})
    assert not REGISTRY[channel].can_read_export_file(link) and not REGISTRY[channel].can_read_export_file(
        Recruitment()
    )
    with pytest.raises(ValueError, match="do not name the columns"):
        REGISTRY[channel].read_export(link, HEAD)


# Settings


@pytest.mark.parametrize("channel", ["generic", "connect"])
@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"file_words": "Completed"}, "file_words", "Line 1 has no word"),
        ({"file_words": "\nA = approved\n = approved"}, "file_words", "Line 3 has no word"),
        (
            {"file_words": "A = approved\nB = fine"},
            "file_words",
            "Line 2: “fine” is not a known meaning. Use one of submitted, approved",
        ),
        ({"file_words": "A = screened_out"}, "file_words", "is not a known meaning"),
        ({"file_words": "A = approved\na  = rejected"}, "file_words", "Line 2: “a” is already in line 1"),
        ({"file_words": ""}, "file_words", "Enter the meaning"),
        ({"file_state": ""}, "file_state", "Name the column"),
        ({"file_person": ""}, "file_person", "No file can be read"),
    ],
)
def test_half_a_description_of_a_file_is_refused(channel, changes, field, words):
    others = {"person_parameter": "participant"}
    form = REGISTRY[channel].settings_form(others | NAMED | changes)
    assert words in str(form.errors.get(field)) and len(form.errors) == 1, form.errors
    assert (
        REGISTRY[channel].settings_form(others | NAMED).is_valid()
        and REGISTRY[channel].settings_form(others).is_valid()
    )
    assert list(form.fields)[-5:] == list(NAMED)


# From the page to what follows


@pytest.fixture
def client():
    return logged_in(user("owner"))


def link_of(channel="generic", **settings) -> Recruitment:
    study = spa_study(user("owner"), target_n=12)
    return Recruitment.objects.create(study=study, channel=channel, pool="panel", settings=settings or NAMED)


def page_of(recruitment) -> str:
    return f"/admin/annotators/recruitment/{recruitment.pk}/panel/"


def uploaded(client, recruitment, text, button="take"):
    return client.post(page_of(recruitment), {"file": SimpleUploadedFile("export.csv", text.encode()), button: "1"})


def came(recruitment, person, session, finishes=True):
    ids = {"person": person, "session": session}
    play = submitted if finishes else claimed
    made = play(recruitment.study, person, recruitment=recruitment, external_ids=ids)
    hours_ago = timezone.now() - timedelta(hours=2)
    if finishes:
        Assignment.objects.filter(pk=made.pk).update(claimed_at=hours_ago, started_at=hours_ago, submitted_at=hours_ago)
    return made


@pytest.mark.slow
@pytest.mark.django_db
def test_the_settings_stand_under_a_heading_of_their_own_and_the_page_takes_the_file_then(client):
    recruitment = link_of(person_parameter="participant", return_complete="DONE-77")
    change = f"/admin/annotators/recruitment/{recruitment.pk}/change/"
    shown = client.get(change).content.decode()
    assert "exported file</h2>" in shown and shown.index("exported file</h2>") < shown.index(
        'name="settings-file_person"'
    )
    assert shown.count('name="settings-file_person"') == 1 and f'href="{page_of(recruitment)}"' not in shown
    assert "exported file" not in client.get(page_of(recruitment)).content.decode()
    refused = client.post(
        page_of(recruitment), {"file": SimpleUploadedFile("export.csv", b"Person\nw1\n"), "take": "1"}
    )
    assert refused.status_code == 200 and "do not name" not in refused.content.decode()
    assert not PanelSubmission.objects.exists()
    data = {
        "key": recruitment.key,
        "pool": "panel",
        "settings-person_parameter": "participant",
        "settings-return_complete": "DONE-77",
    }
    posted = {f"settings-{name}": value for name, value in NAMED.items()}
    wrong = client.post(change, data | posted | {"settings-file_words": "A = fine"})
    assert wrong.status_code == 200 and "Line 1: “fine” is not a known meaning" in wrong.content.decode()
    assert client.post(change, data | posted).status_code == 302
    recruitment.refresh_from_db()
    assert {name: recruitment.settings[name] for name in NAMED} == NAMED
    assert page_of(recruitment) in client.get(change).content.decode()
    assert "exported file" in client.get(page_of(recruitment)).content.decode()


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize("channel", ["generic", "connect"])
def test_the_file_shows_and_takes_and_twice_changes_nothing(client, channel):
    recruitment = link_of(channel, **NAMED)
    done, odd = came(recruitment, "W100", "s100"), came(recruitment, "W500", "s500")
    early, left = came(recruitment, "W200", "s200", False), came(recruitment, "W300", "s300", False)
    lost, paid = came(recruitment, "W600", "s600"), came(recruitment, "W700", "s700")
    text = f"{HEAD}\nW100,s100,Completed,DONE\nW200,s200,Completed,\nW300,s300,Given back,\nW400,s400,Completed,\nW500,s500,Odd,\nW700,s700,paid,\n"
    looked = uploaded(client, recruitment, text, "look").content.decode()
    assert (
        "6 submissions in the file: 6 new, 0 changed, 5 matched to assignments, 1 place would be released. Nothing is stored yet."
        in looked
    )
    assert not PanelSubmission.objects.exists() and set(Assignment.objects.values_list("trust", flat=True)) == {
        "claimed"
    }
    standing = {"matched": 1, "decided": 1, "left": 1, "orphan": 1, "unknown": 1, "unsent": 1, "unreadable": 1}
    for n in range(2):
        assert uploaded(client, recruitment, text).status_code == 302
        assert (
            count_submissions_and_missing_by_status(recruitment) == standing and PanelSubmission.objects.count() == 6
        ), n
        again = uploaded(client, recruitment, text, "look").content.decode()
        assert (
            "6 submissions in the file: 0 new, 0 changed, 0 matched to assignments, 0 places would be released" in again
        )
    trust = dict(Assignment.objects.values_list("pk", "trust"))
    assert {pk for pk, degree in trust.items() if degree == "confirmed"} == {done.pk, paid.pk}
    assert (
        Assignment.objects.get(pk=left.pk).released_reason == "returned"
        and Assignment.objects.get(pk=early.pk).released_reason == ""
    )
    assert set(PanelSubmission.objects.values_list("source", flat=True)) == {"file"}
    shown = client.get(page_of(recruitment)).content.decode()
    assert "Odd, s500" in shown and lost.code[:8] in shown and odd.code[:8] in shown
    # A word that nobody listed changes nothing of what is known.
    uploaded(client, recruitment, f"{HEAD}\nW700,s700,Odd,\n")
    assert PanelSubmission.objects.get(external_id="s700").state == "approved"


@pytest.mark.slow
@pytest.mark.django_db
def test_a_refused_file_writes_nothing(client):
    recruitment = link_of()
    for text, words in (
        (f"{HEAD}\nw1,s1,Paid,\nw2,,Paid,\n", "Row 3, column “Session”: the cell is empty."),
        ("id\nw1\n", "the columns found are: id."),
        (f"{HEAD}\nw1,s1,Paid,\nw1,s1,refused,\n", "in row 2 and refused"),
        ("\n\n", "blank lines"),
    ):
        refused = uploaded(client, recruitment, text)
        assert refused.status_code == 400 and words in refused.content.decode(), words
    assert not PanelSubmission.objects.exists()


@pytest.mark.django_db
def test_the_command_reads_the_same_file(tmp_path, capsys):
    recruitment = link_of()
    done = came(recruitment, "w1", "s1")
    file = tmp_path / "export.csv"
    file.write_text(f"{HEAD}\nw1,s1,Completed,\nw9,s9,Completed,\n", encoding="utf-8-sig")
    for more, is_dry in ((["--dry-run"], True), ([], False)):
        call_command("study", "reconcile", recruitment.study.code, "--file", str(file), *more)
        said = capsys.readouterr().out
        assert (
            "2 submissions: 2 new, 0 changed, 1 matched to assignments, 1 confirmed" in said
            and "1 submitted at the panel, unknown in heval" in said
        )
        assert ("Nothing was changed." in said) is is_dry and PanelSubmission.objects.count() == (0 if is_dry else 2)
    assert Assignment.objects.get(pk=done.pk).trust == "confirmed"
    file.write_text(f"{HEAD}\n,s1,Completed,\n")
    with pytest.raises(CommandError, match="Row 2, column “Person”: the cell is empty"):
        call_command("study", "reconcile", recruitment.study.code, "--file", str(file))
    Recruitment.objects.update(settings={})
    with pytest.raises(CommandError, match="accepts no exported file"):
        call_command("study", "reconcile", recruitment.study.code, "--file", str(file))


@pytest.mark.slow
@pytest.mark.django_db
def test_a_file_wakes_the_alerts_and_without_one_nobody_is_missed(client):
    recruitment = link_of()
    for n in range(4):
        came(recruitment, f"w{n}", f"s{n}")
    assert count_submissions_and_missing_by_status(recruitment) == {} and find_panel_alerts(recruitment) == []
    uploaded(client, recruitment, f"{HEAD}\nw0,s0,Completed,\nw1,s1,Completed,\n")
    assert count_submissions_and_missing_by_status(recruitment) == {"matched": 2, "unsent": 2}
    assert [(one.kind, one.problem) for one in find_panel_alerts(recruitment)] == [
        ("unsent", "2 of 4 are finished in heval but not submitted at the panel.")
    ]


@pytest.mark.slow
@pytest.mark.django_db
def test_approving_writes_the_verdict_and_orders_nothing(client):
    recruitment = link_of()
    done = came(recruitment, "w1", "s1")
    uploaded(client, recruitment, f"{HEAD}\nw1,s1,Completed,\n")
    row = PanelSubmission.objects.get()
    shown = client.get(page_of(recruitment)).content.decode()
    address = f"/admin/annotators/recruitment/{recruitment.pk}/panel/submission/{row.pk}/"
    assert "Approve the" not in shown and address in shown
    for _ in range(2):
        assert client.post(address, {"approve": "1"}).status_code == 302
    assert Verdict.objects.get().kind == "approve" and Verdict.objects.get().assignment_id == done.pk
    assert not PanelOrder.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("channel", ["generic", "connect"])
def test_a_last_page_shows_the_status_of_work_only_where_a_file_has_it(channel):
    recruitment = link_of(channel, person_parameter="participant")
    done = came(recruitment, "w1", "s1")
    assert work_status(Assignment.objects.get(pk=done.pk)) is None
    Recruitment.objects.filter(pk=recruitment.pk).update(settings=NAMED)
    assert [one.name for one in work_status(Assignment.objects.get(pk=done.pk)).stages][:2] == ["Received", "Approved"]


@pytest.mark.django_db
def test_who_is_rejected_by_the_file_reads_it_and_may_object(client):
    recruitment = link_of()
    done = came(recruitment, "w1", "s1")
    uploaded(client, recruitment, f"{HEAD}\nw1,s1,refused,\n")
    stand = work_status(Assignment.objects.get(pk=done.pk))
    assert stand.rejection and stand.rejection.may_appeal
    made = create_appeal(Assignment.objects.get(pk=done.pk), "I did all of it.")
    assert (
        made.verdict.category == Verdict.AT_PANEL
        and work_status(Assignment.objects.get(pk=done.pk)).rejection.appeal == made
    )
    uploaded(client, recruitment, f"{HEAD}\nw1,s1,Paid,\n")
    stand = work_status(Assignment.objects.get(pk=done.pk))
    assert stand.rejection is None and [one.name for one in stand.stages][:2] == ["Received", "Approved"]
