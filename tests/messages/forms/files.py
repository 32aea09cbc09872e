"""The lines of files that a link's pages read: a panel's submissions, bonuses, and who the annotators are."""

from annotators.pay import ledger
from annotators.places.places import compute_receipt
from annotators.recruitment import sample
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from tests import players
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import (
    CHANNELS,
    PANEL_PAGES,
    WORK,
    bare,
    link,
    link_url,
    me,
    posted,
    said,
    says_refused,
    upload,
)
from tests.messages.lines import NOTHING
from tests.messages.pages.scenarios import launched

COLUMNS = {"file_person": "Person", "file_session": "Session", "file_state": "State", "file_words": "Done = submitted"}
HEAD = "Submission id,Participant id,Status,Completed at"
ID = "5e1a" * 6


def panel_file(channel, text, **settings):
    """What the panel's page says of an exported file."""
    return posted(
        lambda: link(channel, settings=settings), lambda one: link_url(one, "panel/"), file=upload(text), take="1"
    )


def generic(*rows, **settings):
    return panel_file("generic", "\n".join(("Person,Session,State", *rows)), **COLUMNS | settings)


def prolific(*rows, head=HEAD):
    return panel_file("prolific", "\n".join((head, *rows)))


def demographic(text, declared=(("Age", "number", False),), **data):
    """What the sample's page says of a demographic file."""

    def make():
        one = link("prolific")
        sample.replace_demographic_columns(one.study, list(declared), by=None)
        return one

    whole = {"person": "Participant id", "take": "1"} | data
    return posted(make, lambda one: link_url(one, "demographics/"), file=upload(text), **whole)


def with_rows(n, module, scenario):
    """Where a file may have so many rows."""
    from pytest import MonkeyPatch

    def limited():
        with MonkeyPatch.context() as patch:
            patch.setattr(f"{module}.MOST_ROWS", n)
            return scenario()

    return limited


def bonuses(text, make=bare, before=None):
    """What the page of pay says of bonuses; ``{receipt}`` is of somebody's finished work."""

    def scenario():
        study = make()
        one = link(study=study)
        receipt = compute_receipt(players.claimed(study, "a", one).code) if make is launched else ""
        lines = text.replace("{receipt}", receipt)
        client, url = logged_in(me()), link_url(one, "pay/")
        if before:
            client.post(url, {"add": "1", "lines": lines})
        return said(client.post(url, {"add": "1", "lines": lines}, follow=True))

    return scenario


def bonus_file(content, size=None):
    def scenario():
        from annotators.admin.pay import BonusForm

        file = upload(content)
        if size is None:
            return posted(link, lambda one: link_url(one, "pay/"), add="1", file=file)()
        form = BonusForm({}, {"file": file})
        file.size = size
        from tests.messages.lines import Shown

        return [Shown(text) for errors in form.errors.values() for text in errors]

    return scenario


def pays(**data):
    return posted(link, lambda one: link_url(one, "pay/"), **data)


def bad_submission():
    import_submissions_and_release_places(link(), [SubmissionSnapshot("T", "", "P1", "submitted")], "file")


LINES = {
    f"{CHANNELS}:read_export": [
        (
            "heval cannot read files of this panel",
            "Compare its submissions by hand",
            says_refused(lambda: REGISTRY["open_link"].read_export(None, "")),
        ),
    ],
    f"{CHANNELS}:parse_submissions_file": [
        (
            "This link's settings do not name the columns",
            "Enter them in the link's settings first",
            says_refused(lambda: REGISTRY["generic"].read_export(link("generic"), "x")),
        ),
        (
            "the submission S1 of P1 is Done (submitted) in row 2",
            "Correct one of them",
            generic("P1,S1,Done", "P1,S1,Else"),
        ),
    ],
    f"{CHANNELS}:parse_submissions_csv": [
        ("Row 2 has 1 columns; the first row has 4", "Export the file again", prolific("x")),
        ("Row 2, Submission id: “x” is not a Prolific id", "Export the file again", prolific(f"x,{ID},APPROVED,")),
        ("Row 2, Status: the cell is empty", "Export the file again", prolific(f"{ID},{ID},,")),
        (
            f"Row 3: the submission {ID} is already in row 2",
            "Remove one of them",
            prolific(*[f"{ID},{ID},APPROVED,"] * 2),
        ),
        (
            "The file has more than 0 rows",
            "Split it into several files",
            with_rows(0, "annotators.recruitment.channels.prolific.files", prolific(f"{ID},{ID},APPROVED,")),
        ),
        ("Row 2 is not valid CSV", "Export the file again", prolific('"x')),
        ("The file is empty", "Export it again", panel_file("prolific", "\n")),
    ],
    f"{CHANNELS}:_describe_fault": [
        ("the cell is empty", "Fill it in, or remove the row", generic(",S1,Done")),
        ("the cell has 65 characters", "Correct the cell", generic(f"{'w' * 65},S1,Done")),
        (
            "“a b” is not an id of this panel",
            "Correct the cell",
            panel_file("connect", "Person,Session,State\na b,S123,Done", **COLUMNS),
        ),
    ],
    f"{CHANNELS}:_columns": [
        ("Row 1 does not name the column Status", "Choose the file that Prolific exports", prolific(head=HEAD[:29]))
    ],
    f"{CHANNELS}:_parse_time": [
        (
            "Row 2, Completed at: “noon” is not a time",
            "Export the file again",
            prolific(f"{ID},{ID},APPROVED,noon"),
        ),
        (
            "“2026-10-25T12:27:09” has no time zone",
            "Export the file again",
            prolific(f"{ID},{ID},APPROVED,2026-10-25T12:27:09"),
        ),
    ],
    f"{CHANNELS}:import_submissions_and_release_places": [
        ("Submission 1: the submission's id is empty", "Correct it at the panel", says_refused(bad_submission))
    ],
    f"{CHANNELS}:import_sample_demographics": [
        (
            "No column is declared yet",
            "Declare the columns to keep first",
            says_refused(lambda: sample.import_sample_demographics(link(), "x", "id", by=None)),
        )
    ],
    f"{CHANNELS}:_read_values": [
        ("Row 2 has 1 columns, fewer", "Correct this row", demographic("Participant id,Age\nx")),
        (
            "The file has more than 1 rows",
            "Split it into several files",
            with_rows(1, "annotators.recruitment.sample", demographic("Participant id,Age\nx,3")),
        ),
        (
            "Row 2, Participant id: the cell is empty",
            "Fill it in, or remove the row",
            demographic("Participant id,Age\n,3"),
        ),
        (
            "Row 2, Sex: this is the person's panel id",
            "Remove the column from the declaration",
            demographic(f"Participant id,Sex\n{ID},{ID}", declared=[("Sex", "category", False)]),
        ),
        ("Row 2 is not valid CSV", "Correct this row", demographic('Participant id,Age\n"x')),
        ("The file is empty", "Choose another file", demographic("\n")),
    ],
    f"{CHANNELS}:_column_indexes": [
        ("Row 1 does not name the column Participant id and Age", "Correct this row", demographic("a,b\n1,2"))
    ],
    f"{CHANNELS}:_value": [
        (
            "Row 2, Age: the value is longer than 100",
            "Correct it",
            demographic(f"Participant id,Age\n{ID},{'9' * 101}"),
        ),
        (
            "Row 2, Age: “old” is not a number",
            "declare the column as categorical",
            demographic(f"Participant id,Age\n{ID},old"),
        ),
    ],
    f"{PANEL_PAGES}:demographics_view": [
        (
            "The columns are declared",
            NOTHING,
            posted(link, lambda one: link_url(one, "demographics/"), declare="1", numbers="Age"),
        ),
        ("Imported: 0 people of this link", NOTHING, demographic(f"Participant id,Age\n{ID},31")),
    ],
    f"{PANEL_PAGES}:clean": [
        ("The file is larger than 2 MB", "Split it into several files", bonus_file("x", size=10**9)),
        ("The file is not UTF-8 text", "Save it as", bonus_file(b"\xff\xfe")),
    ],
    f"{PANEL_PAGES}:ledger_view": [("1 payment recorded as due", NOTHING, bonuses("{receipt},1.50,Thanks", launched))],
    f"{PANEL_PAGES}:_perform_action": [("No action was chosen", "Press one of the buttons", pays())],
    f"{PANEL_PAGES}:_amount": [
        (
            "The total is not a number, so nothing was ordered",
            "Enter it as shown",
            lambda: with_token(total="all"),
        )
    ],
    f"{WORK}:parse_bonus_csv": [
        ("The file has no rows", "Each row needs a receipt", bonuses("receipt,amount,reason")),
        ("The file has more than 1 rows", "Split it", with_rows(1, "annotators.pay.files", bonuses("a,1,x\nb,1,x"))),
        (
            "Row 1: this bonus is already recorded",
            "Remove the row, or change its reason",
            bonuses("{receipt},1.50,Thanks", launched, before=True),
        ),
        (
            "Row 2: it repeats row 1",
            "Remove one of them",
            bonuses("{receipt},1.50,Thanks\n{receipt},1.50,Thanks", launched),
        ),
    ],
    f"{WORK}:_rows": [("Row 1 is not valid CSV", "Correct this row", bonuses('"x'))],
    f"{WORK}:_extra": [
        ("Row 1 has 2 cells instead of three", "Put a reason with a comma in quotes", bonuses("a,1")),
        ("Row 1, receipt: no annotator of this link has “a”", "Correct the receipt", bonuses("a,1,x")),
        ("Row 1, amount: “free” is not an amount", "Enter one such as 1.50", bonuses("{receipt},free,x", launched)),
        ("Row 1, reason: it is empty", "Enter at most 300 characters", bonuses("{receipt},1,", launched)),
    ],
    f"{WORK}:order_due_payments_at_panel": [
        ("No due payment can be ordered", "You need not do anything", lambda: with_token(total="1.00")),
        (
            "The total is now 3.50, but you entered 1.40",
            "enter the new total",
            lambda: with_token(total="1.40", is_due=True),
        ),
    ],
}


def with_token(is_due=False, **data):
    """The page of pay of a link whose panel answers, in memory, and shows somebody's work."""
    from pytest import MonkeyPatch

    from annotators.models import Payment
    from annotators.recruitment.panels.http_client import store_or_delete_secrets
    from tests.annotators.pay.submissions import shown
    from tests.annotators.recruitment.pretend import Pretend, speaks

    with MonkeyPatch.context() as patch:
        speaks(patch, Pretend())
        patch.setattr(type(REGISTRY["generic"]), "pays_by", frozenset({"bonus"}))
        one = link("generic", launched())
        store_or_delete_secrets(one, {"token": "t"}, by=None)
        if is_due:
            done = players.submitted(one.study, "a", recruitment=one)
            shown(one, (done, "submitted"))
            extra = ledger.ExtraPayment(done, ledger.ZERO + 1, "Thanks")
            ledger.add_extra_payments(one, [extra], Payment.Kind.BONUS, me())
        return said(logged_in(me()).post(link_url(one, "pay/"), {"order": "1", **data}, follow=True))
