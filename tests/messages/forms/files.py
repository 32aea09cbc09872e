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
    bare,
    link,
    link_url,
    me,
    posted,
    said,
    says_refused,
    upload,
)
from tests.messages.lines import only_informs
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


FORMS = {
    "heval cannot read": says_refused(lambda: REGISTRY["open_link"].read_export(None, "")),
    "This link's settings": says_refused(lambda: REGISTRY["generic"].read_export(link("generic"), "x")),
    "the submission … of … is … (…) in row": generic("P1,S1,Done", "P1,S1,Else"),
    "_describe_fault: the cell is empty": generic(",S1,Done"),
    "the cell has … characters": generic(f"{'w' * 65},S1,Done"),
    "is not an id of this panel": panel_file("connect", "Person,Session,State\na b,S123,Done", **COLUMNS),
    "is not a Prolific": prolific(f"x,{ID},APPROVED,"),
    "_add_problems: the cell": prolific(f"{ID},{ID},,"),
    "is already in row": prolific(*[f"{ID},{ID},APPROVED,"] * 2),
    "is not a time": prolific(f"{ID},{ID},APPROVED,noon"),
    "_read_values: the cell": demographic("Participant id,Age\n,3"),
    "this is the person's": demographic(f"Participant id,Sex\n{ID},{ID}", declared=[("Sex", "category", False)]),
    "the value is longer": demographic(f"Participant id,Age\n{ID},{'9' * 101}"),
    "Submission …: the …'s": says_refused(bad_submission),
    "No column is declared": says_refused(lambda: sample.import_sample_demographics(link(), "x", "id", by=None)),
    "The columns are declared": only_informs(
        posted(link, lambda one: link_url(one, "demographics/"), declare="1", numbers="Age")
    ),
    "Imported: … people": only_informs(demographic(f"Participant id,Age\n{ID},31")),
    "Split it into smaller": bonus_file("x", size=10**9),
    "payment… recorded as due": only_informs(bonuses("{receipt},1.50,Thanks", launched)),
    "No action was chosen": pays(),
    "The total is not a number": lambda: with_token(total="all"),
    "The file has no rows": bonuses(" "),
    "Row …: this bonus": bonuses("{receipt},1.50,Thanks", launched, before=True),
    "Row …: it repeats": bonuses("{receipt},1.50,Thanks\n{receipt},1.50,Thanks", launched),
    "Row …, receipt": bonuses("a,1,x"),
    "Row …, amount": bonuses("{receipt},free,x", launched),
    "Row …, reason": bonuses("{receipt},1,", launched),
    "No due payment": lambda: with_token(total="1.00"),
    "The total is now": lambda: with_token(total="1.40", is_due=True),
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
