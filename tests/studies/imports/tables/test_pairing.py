"""Single texts of two systems become pairs: alike in attributes, close in length, each text once, the same for the same seed."""

import random
from itertools import product

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from studies.imports.tables import Options, import_stimuli_file
from studies.imports.tables.plan import PairCandidate, _matched
from studies.models import Arm, Output, Prompt, Study
from studies.stimuli.texts import word_count
from tests.builders import add_choice, launched, user
from tests.studies.imports.files import lines, table

pytestmark = pytest.mark.django_db


def texts(n=60, seed=1):
    """Sentences of two systems with attributes and lengths of their own."""
    rng = random.Random(seed)
    return [
        {
            "system": system,
            "text": " ".join([f"{system}{number}", *["word"] * rng.randint(3, 12)]),
            "sentiment": rng.choice(["good", "bad"]),
            "tense": rng.choice(["past", "present"]),
        }
        for system in ("cga", "v1")
        for number in range(n)
    ]


@pytest.fixture
def put(tmp_path):
    def imported(data, into=None, name="texts.csv", **options):
        study = into or Study.objects.create(title="A draft", seed=5)
        if not into:
            Arm.objects.create(study=study, name="all")
        path = tmp_path / name
        path.write_bytes(data)
        defaults = {
            "makes_pairs": True,
            "creates_systems": True,
            "pairs_by": ("sentiment", "tense"),
            "max_length_difference": 1,
        }
        return study, import_stimuli_file(study, path, options=Options(**defaults | options), by=None)

    return imported


def pairs_of(study):
    found = {}
    for key, system, text in Output.objects.filter(system__study=study).values_list(
        "prompt__key", "system__name", "text"
    ):
        found.setdefault(key, {})[system] = text
    return found


def test_pairs_are_alike_in_attributes_and_in_length_and_use_a_text_once(put):
    rows = texts()
    study, report = put(table(rows))
    assert report.is_written and not report.problems
    pairs, about = pairs_of(study), {row["text"]: row for row in rows}
    assert len(pairs) > 30 and all(set(pair) == {"cga", "v1"} for pair in pairs.values())
    for pair in pairs.values():
        first, second = (about[pair[system]] for system in ("cga", "v1"))
        assert all(first[name] == second[name] for name in ("sentiment", "tense"))
        assert abs(word_count(first["text"]) - word_count(second["text"])) <= 1
    used = [text for pair in pairs.values() for text in pair.values()]
    assert len(used) == len(set(used))
    prompt = Prompt.objects.filter(study=study).first()
    assert set(prompt.attributes) == {"sentiment", "tense"} and prompt.key.startswith("pair-")
    (finding,) = [one for one in report.findings if one.kind == "pairs"]
    assert finding.count == len(pairs) and any("have no partner" in note for note in finding.examples)


def test_the_same_file_and_seed_give_the_same_pairs_and_another_seed_others(put):
    data = table(texts())
    once, _ = put(data)
    assert not put(data, into=once)[1].has_changes
    again, _ = put(data)
    assert pairs_of(again) == pairs_of(once)
    other = Study.objects.create(title="Another", seed=6)
    Arm.objects.create(study=other, name="all")
    put(data, into=other)
    assert pairs_of(other) != pairs_of(once)


def test_pairs_stand_in_a_random_order_so_that_a_limit_is_a_sample(put):
    study, _ = put(table(texts()), pairs_by=())
    lengths = [word_count(pair["cga"]) for _, pair in sorted(pairs_of(study).items())]
    assert len(lengths) > 50 and lengths != sorted(lengths) and set(lengths[:10]) != {min(lengths)}


def test_no_other_way_of_pairing_makes_more_pairs():
    rng = random.Random(3)
    for _ in range(40):
        sides = [sorted(rng.randint(1, 8) for _ in range(rng.randint(0, 5))) for _ in range(2)]
        ours, theirs = ([PairCandidate(n, "s", "t", words, ()) for n, words in enumerate(side)] for side in sides)
        assert len(list(_matched(ours, theirs, 1))) == most(sides[0], sides[1])


def most(ours, theirs):
    if not ours:
        return 0
    taken = [
        1 + most(ours[1:], theirs[:n] + theirs[n + 1 :]) for n, other in enumerate(theirs) if abs(ours[0] - other) <= 1
    ]
    return max([most(ours[1:], theirs), *taken])


def test_a_text_that_its_system_gave_before_is_left_out_and_a_limit_is_kept(put):
    rows = [{"system": s, "text": f"{s} same words here", "a": "1"} for s, _ in product(("x", "y"), range(3))]
    rows += [{"system": s, "text": f"{s} other {n} words", "a": "1"} for s in ("x", "y") for n in range(5)]
    study, report = put(table(rows), pairs_by=("a",), max_pairs=4)
    assert len(pairs_of(study)) == 4
    (finding,) = [one for one in report.findings if one.kind == "pairs"]
    assert (
        "2 texts of x are repeated" in finding.examples
        and "2 more pairs are possible, above the maximum number of pairs" in finding.examples
    )


def test_attributes_of_json_lines_are_found_inside_their_object(put):
    rows = [
        {"system": s, "text": f"{s} {n} words", "attributes": {"tense": t}}
        for s in "ab"
        for n, t in enumerate(["past", "now"])
    ]
    study, _ = put(lines(rows), name="texts.jsonl", pairs_by=("tense",))
    assert {p.attributes["tense"] for p in Prompt.objects.filter(study=study)} == {"past", "now"}


@pytest.mark.parametrize(
    "rows, row, words",
    [
        ([{"system": "a", "text": "x", "tense": ""}], 2, "tense”: is missing"),
        ([{"system": "", "text": "x", "tense": "past"}], 2, "names no system"),
        ([{"system": "a", "text": " ", "tense": "past"}], 2, "is empty"),
        ([{"system": "a", "text": "x", "tense": "past"}], None, "the file has 1: a"),
        ([{"system": s, "text": s, "tense": "past"} for s in "abc"], None, "the file has 3: a, b, c"),
        ([{"system": s, "text": s, "tense": s} for s in "ab"], None, "no two texts"),
    ],
)
def test_what_cannot_be_paired_is_named_with_its_row(put, rows, row, words):
    study, report = put(table(rows), pairs_by=("tense",))
    assert not report.is_written and not Output.objects.filter(system__study=study).exists()
    assert any(words in str(problem) and problem.row == row for problem in report.problems), list(
        map(str, report.problems)
    )


def test_pairs_become_a_study_of_two_choices(put):
    study, _ = put(table(texts()))
    for name, value in {
        "public_title": "Sentences",
        "contact": "a@example.org",
        "minutes": 5,
        "reward": 1,
        "target_n": 4,
        "consent": "Yes",
    }.items():
        setattr(study, name, value)
    study.save()
    add_choice(study, m=5, stopping="none")
    assert launched(study).batches.count() == 4


def test_the_page_asks_for_it_and_refuses_half_of_it(client):
    from django.core.files.uploadedfile import SimpleUploadedFile

    study = Study.objects.create(title="A draft", seed=5)
    Arm.objects.create(study=study, name="all")
    client.force_login(user("root", is_superuser=True))
    address = reverse("import", args=[study.pk])

    def send(**fields):
        return client.post(
            address, {"file": SimpleUploadedFile("t.csv", table(texts())), "creates_systems": "on"} | fields
        )

    assert send(pairs_by="tense").status_code == 400
    assert send(makes_pairs="on", makes_batches="on").status_code == 400
    assert send(makes_pairs="on", max_length_difference="-1").status_code == 400
    response = send(makes_pairs="on", pairs_by="sentiment, tense", max_length_difference="1", max_pairs="20")
    assert response.status_code == 302
    assert "20 pairs of texts were made" in client.get(response.url).content.decode()
    client.post(response.url, {"confirm": "1"})
    assert len(pairs_of(study)) == 20


def test_options_of_an_upload_from_before_an_upgrade_are_read():
    assert Options.from_json({"pairs_within": 3, "pairs_most": 9}) == Options(max_length_difference=3, max_pairs=9)


def test_the_command_makes_pairs_and_refuses_half_of_it(tmp_path, capsys):
    study = Study.objects.create(title="A draft", seed=5)
    Arm.objects.create(study=study, name="all")
    path = tmp_path / "texts.csv"
    path.write_bytes(table(texts()))
    names = {"pairs_by": "sentiment, tense", "create_systems": True}
    with pytest.raises(CommandError, match="Add --pairs"):
        call_command("import_study", str(study.code), str(path), **names)
    with pytest.raises(CommandError, match="whole numbers from 0"):
        call_command("import_study", str(study.code), str(path), pairs=True, max_length_difference=-1, **names)
    call_command("import_study", str(study.code), str(path), pairs=True, max_length_difference=1, max_pairs=7, **names)
    assert len(pairs_of(study)) == 7
