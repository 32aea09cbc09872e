"""The panel's demographic file: declared columns of people who came, nothing else, and out of it counts that give nobody away."""

from itertools import product

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from annotators.models import Annotator, Assignment, Recruitment, SampleColumn, SampleValue
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places.exclusions import exclude_assignments
from annotators.recruitment import sample
from annotators.recruitment.sample import (
    import_sample_demographics,
    replace_demographic_columns,
    sample_demographics_table,
    summarize_sample_column,
)
from studies.models import AuditEvent, StudyMember
from tests.admin_pages import logged_in
from tests.builders import spa_study, user
from tests.players import claimed

PEOPLE = [f"{n:x}f1a" * 6 for n in range(1, 13)]
HEADER = "Submission id,Participant id,Status,Age,Sex,Ethnicity simplified,Country of residence"


@pytest.fixture
def recruitment(db):
    return Recruitment.objects.create(study=spa_study(user("owner"), target_n=24), channel="prolific", pool="panel")


def took_part(recruitment, *people) -> list[Assignment]:
    made = [claimed(recruitment.study, person, recruitment) for person in people]
    now = timezone.now()
    Assignment.objects.filter(pk__in=[one.pk for one in made]).update(started_at=now, submitted_at=now)
    return made


def lines(*rows) -> str:
    """(person, age, sex); what nobody declared is beside it."""
    table = [
        f"s{n},{person},APPROVED,{age},{sex},canary-ethnicity,canary-country"
        for n, (person, age, sex) in enumerate(rows)
    ]
    return "\n".join([HEADER, *table]) + "\n"


def kept() -> list[tuple[str, str]]:
    return list(SampleValue.objects.order_by("annotator", "column").values_list("column__name", "value"))


AGE_AND_SEX = [("Age", "number", False), ("Sex", "category", False)]


def test_only_declared_columns_of_people_who_came_are_kept(recruitment):
    took_part(recruitment, *PEOPLE[:2])
    text = lines(
        (PEOPLE[0].upper(), 31, "Female"), (PEOPLE[1], "DATA_EXPIRED", "CONSENT_REVOKED"), (PEOPLE[2], 44, "Male")
    )
    with pytest.raises(ValueError, match="No column is declared"):
        import_sample_demographics(recruitment, text, "Participant id", by=None)
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=user("owner"))
    annotators = Annotator.objects.count()
    looked = import_sample_demographics(recruitment, text, "Participant id", by=None, dry_run=True)
    assert (looked.people, looked.strangers, looked.values, looked.missing) == (2, 1, 2, 2) and not kept()
    import_sample_demographics(recruitment, text, "participant ID", by=None)
    assert kept() == [("Age", "31"), ("Sex", "Female")] and Annotator.objects.count() == annotators
    stored = (
        str(list(SampleValue.objects.values()))
        + str(list(SampleColumn.objects.values()))
        + str(list(AuditEvent.objects.values()))
    )
    assert "canary" not in stored and PEOPLE[0] not in stored and "44" not in str(kept())
    # What somebody takes back later goes, also where another row of theirs still says it.
    import_sample_demographics(
        recruitment, lines((PEOPLE[0], 31, "CONSENT_REVOKED"), (PEOPLE[0], "", "Female")), "Participant id", by=None
    )
    assert kept() == [("Age", "31")]


def test_a_withdrawal_takes_the_persons_values_along_and_they_are_not_read_again(recruitment):
    first, _ = took_part(recruitment, *PEOPLE[:2])
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=None)
    text = lines((PEOPLE[0], 31, "Female"), (PEOPLE[1], 25, "Male"))
    import_sample_demographics(recruitment, text, "Participant id", by=None)
    withdraw_annotator_and_erase_texts(first)
    assert kept() == [("Age", "25"), ("Sex", "Male")]
    assert import_sample_demographics(recruitment, text, "Participant id", by=None).people == 1 and len(kept()) == 2


def test_a_column_that_is_not_declared_any_more_goes_with_its_values(recruitment):
    took_part(recruitment, PEOPLE[0])
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=None)
    import_sample_demographics(recruitment, lines((PEOPLE[0], 31, "Female")), "Participant id", by=None)
    replace_demographic_columns(recruitment.study, [("Age", "number", True)], by=None)
    assert kept() == [("Age", "31")] and SampleColumn.objects.get().shows_small
    replace_demographic_columns(recruitment.study, [("Age", "category", False)], by=None)
    assert not kept() and AuditEvent.objects.filter(verb="declare sample columns").count() == 3


def test_what_cannot_be_read_is_named_by_row_and_column_and_nothing_is_kept(recruitment):
    took_part(recruitment, PEOPLE[0])
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=None)
    for text, words in (
        ("", "empty"),
        ("a,b\n1,2\n", "Row 1: no column Participant id or Age or Sex; the columns found are: a, b. Correct this row"),
        (lines((PEOPLE[0], 31, "F" * 101)), "Row 2, column “Sex”: the value is longer than 100"),
        (lines((PEOPLE[0], 31, "F\x00")), "NUL character"),
        (lines((" ", 31, "F")), "Row 2, column “Participant id”: the cell is empty"),
        (f"{HEADER}\ns1,{PEOPLE[0]}\n", "Row 2: has 2 cells, the header has"),
        (f'{HEADER}\n"s1', "a quote is opened and never closed"),
    ):
        with pytest.raises(ValueError, match=words):
            import_sample_demographics(recruitment, text, "Participant id", by=None)
    assert not kept()


@pytest.mark.parametrize(
    "cell", ["Prefer not to say", "DATA_EXPIRED", "thirty", "NaN", "Infinity", "３１", "18-24", ""]
)
def test_who_withholds_a_number_stays_in_the_sample(recruitment, cell):
    took_part(recruitment, *PEOPLE[:2])
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=None)
    text = lines((PEOPLE[0], cell, "Female"), (PEOPLE[1], 25, "Male"))
    joined = import_sample_demographics(recruitment, text, "Participant id", by=None)
    assert sorted(kept()) == [("Age", "25"), ("Sex", "Female"), ("Sex", "Male")] and (
        joined.values,
        joined.missing,
    ) == (3, 1)
    is_known = cell in ("DATA_EXPIRED", "NaN", "")
    assert (joined.not_numbers, joined.words) == ((0, ()) if is_known else (1, (cell,)))


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_sample_may_be_separated_as_a_spreadsheet_does_it(recruitment, mark):
    took_part(recruitment, PEOPLE[0])
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=None)
    text = lines((PEOPLE[0], 31, "Female")).replace(",", mark)
    assert import_sample_demographics(recruitment, text, "Participant id", by=None).values == 2


# Counts


def cells(values, people=None, **how):
    one = summarize_sample_column("c", "category", people or len(values), values, **how)
    return {cell.value: cell.n for cell in one.cells}, one.missing


def test_small_counts_are_hidden_with_what_gives_them_away():
    assert cells(["a"] * 9 + ["b"] * 6) == ({"a": 9, "b": 6}, 0)
    # One alone would be the sum less the others.
    assert cells(["a"] * 9 + ["b"] * 6 + ["c"] * 2) == ({"a": 9, "b": None, "c": None}, 0)
    assert cells(["a"] * 9 + ["b"] * 4 + ["c"] * 2, 20) == ({"a": 9, "b": None, "c": None}, 5)
    assert cells(["a"] * 3, 20) == ({"a": None}, None)
    # Two that are two together are one each, and two that are eight are four each.
    assert cells(["a"] * 9 + ["b", "c"], 20) == ({"a": None, "b": None, "c": None}, 9)
    assert cells(["b", "c"], 20) == ({"b": None, "c": None}, None)
    assert cells(["a"] * 9 + ["b"] * 4 + ["c"] * 4) == ({"a": None, "b": None, "c": None}, 0)
    assert cells(["a"] * 9 + ["c"] * 2, shows_small=True) == ({"a": 9, "c": 2}, 0)
    assert summarize_sample_column("c", "category", 0, []).cells == ()


@pytest.mark.parametrize("counts", [(1,), (4, 9), (2, 5, 5), (4, 4, 30), (1, 2, 3), (5, 5), (1, 6, 7, 8)])
@pytest.mark.parametrize("missing", [0, 3, 12])
def test_no_hidden_count_follows_from_those_that_are_shown(counts, missing):
    values = [name for name, n in zip("abcd", counts, strict=False) for _ in range(n)]
    shown, table = cells(values, len(values) + missing)
    hidden = [name for name, n in shown.items() if n is None]
    assert all(n is None or n >= 5 for n in shown.values())
    if table is None or not hidden:
        return
    # Who knows the rule and the sum finds more than one way to fill what is hidden.
    left, known_small = sum(counts) - sum(n for n in shown.values() if n), sum(n < 5 for n in counts)
    ways = [
        fill
        for fill in product(range(1, left + 1), repeat=len(hidden))
        if sum(fill) == left and sum(n < 5 for n in fill) >= known_small
    ]
    assert all(len({fill[place] for fill in ways}) > 1 for place in range(len(hidden)))


def test_numbers_have_a_median_and_a_range_where_enough_tell_them():
    one = summarize_sample_column("Age", "number", 10, ["30", "21", "64.5", "33", "40", "22"])
    assert (one.known, one.missing, float(one.median), float(one.minimum), float(one.maximum)) == (6, 4, 31.5, 21, 64.5)
    few = summarize_sample_column("Age", "number", 10, ["30", "21"])
    assert (few.known, few.missing, few.median, few.minimum) == (None, None, None, None)
    assert float(summarize_sample_column("Age", "number", 10, ["30", "21"], shows_small=True).median) == 25.5
    assert summarize_sample_column("Age", "number", 10, []).missing == 10


def test_the_table_counts_whom_the_analysis_keeps(recruitment):
    made = took_part(recruitment, *PEOPLE)
    claimed(recruitment.study, "5aaa" * 6, recruitment)  # at work
    replace_demographic_columns(recruitment.study, AGE_AND_SEX, by=None)
    import_sample_demographics(
        recruitment,
        lines(*((person, 20 + n, "Female" if n < 6 else "Male") for n, person in enumerate(PEOPLE))),
        "Participant id",
        by=None,
    )
    age, sex = sample_demographics_table(recruitment.study)
    assert (age.people, age.known, float(age.median)) == (12, 12, 25.5)
    assert [(cell.value, cell.n, cell.percent) for cell in sex.cells] == [("Female", 6, 50.0), ("Male", 6, 50.0)]
    exclude_assignments(made[:1], "technical", by=user("owner"))
    assert (
        sample_demographics_table(recruitment.study)[0].people,
        sample_demographics_table(recruitment.study)[1].cells[0].value,
    ) == (
        11,
        "Male",
    )


def test_a_files_words_are_no_formula():
    table = sample.sample_demographics_csv([summarize_sample_column("=c", "category", 9, ["=1+1"] * 9)])
    assert "'=1+1" in table and "'=c" in table and "\n=" not in table and ",=" not in table


# The page and REST


def test_a_file_before_its_columns_is_refused_where_it_is_read(recruitment):
    address = f"/admin/annotators/recruitment/{recruitment.pk}/demographics/"
    file = SimpleUploadedFile("d.csv", b"Participant id,Age\nx,3")
    page = logged_in(user("owner")).post(address, {"person": "Participant id", "file": file, "look": "1"})
    assert page.status_code == 400
    alert = page.content.decode().partition('role="alert"')[2].partition("</div>")[0]
    assert "No column is declared yet. Declare the columns to keep first." in alert


@pytest.mark.slow
def test_the_page_declares_looks_reads_and_shows(recruitment, client):
    took_part(recruitment, *PEOPLE)
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{recruitment.pk}/demographics/"
    assert "The file" not in client.get(address).content.decode(), "columns come first"
    for wrong, words in (
        ({"numbers": "Age\nage"}, "named twice"),
        ({"shown_small": "Sex"}, "not a declared column"),
        ({"numbers": "\n".join(f"c{n}" for n in range(21))}, "Declare at most 20"),
    ):
        refused = client.post(address, wrong | {"declare": "1"})
        assert refused.status_code == 400 and words in refused.content.decode()
    client.post(address, {"numbers": "Age", "categories": "Sex", "declare": "1"})
    assert 'value="Participant id"' in client.get(address).content.decode()

    def sent(button, text):
        return client.post(
            address, {"person": "Participant id", "file": SimpleUploadedFile("d.csv", text.encode()), button: "1"}
        )

    text = lines(*((person, 20 + n, "Female" if n < 6 else "Male") for n, person in enumerate(PEOPLE)))
    assert "12 people of this link are in the file" in sent("look", text).content.decode() and not kept()
    of_two = sent("look", lines((PEOPLE[0], 20, "Female"), ("nobody", 30, "Male"))).content.decode()
    assert "1 person of this link is in the file, and 1 other, about whom heval stores nothing" in of_two
    refused = sent("take", lines((PEOPLE[0], "x" * 500, "y")))
    assert refused.status_code == 400 and "Row 2, column “Age”" in refused.content.decode()
    assert sent("take", text).status_code == 302
    page = client.get(address).content.decode()
    assert "median 25.5, 20 to 31" in page and "Female" in page and PEOPLE[0] not in page
    table = client.get(f"{address}table.csv").content.decode()
    assert "Sex,Female,6,50.0" in table and "Age,,12,,25.5,20,31" in table
    StudyMember.objects.create(study=recruitment.study, user=user("looker"), role=StudyMember.Role.VIEWER)
    assert logged_in(user("looker")).get(address).status_code == 403
    over_rest = logged_in(user("owner")).get(f"/api/v1/studies/{recruitment.study.code}/demographics/").json()
    assert over_rest[0]["median"] == 25.5 and over_rest[1]["cells"][0] == {"value": "Female", "n": 6, "percent": 50.0}
