import hashlib
import subprocess
import sys

import numpy as np
import pytest

from analysis.stats import seeds


def test_the_same_parts_give_the_same_bits_in_another_process():
    script = (
        "from analysis.stats import seeds; print(seeds.seeded_generator('s', {'b': 1, 'a': .5}).integers(0, 2**62))"
    )
    runs = {subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout for _ in range(2)}
    assert runs == {f"{seeds.seeded_generator('s', {'a': 0.5, 'b': 1}).integers(0, 2**62)}\n".encode()}


@pytest.mark.parametrize("other", [("a", "b|c"), ("ab", "c"), ("a", "b", "c", ""), ("a", ["b", "c"])])
def test_different_parts_never_share_a_seed(other):
    assert seeds.seed_hex("a", "b", "c") != seeds.seed_hex(*other)


HEADER = ["b", "flag", "text"]


def sha256_of_rows(rows, header=HEADER):
    return seeds.unordered_rows_sha256(header, [(np.arange(len(rows)), column) for column in zip(*rows, strict=True)])


def test_the_hash_of_the_rows_knows_their_content_and_not_their_order():
    rows = [("b", 1, 0.5), ("a", None, 0.25), ("c", 1, 0.5)]
    assert sha256_of_rows(rows) == sha256_of_rows(rows[::-1])
    assert sha256_of_rows(rows) != sha256_of_rows(rows[:2])
    assert sha256_of_rows([("a,b", "")], "xy") != sha256_of_rows([("a", "b")], "xy")


@pytest.mark.parametrize("most_merged", [1, 4, 50_000])
def test_the_hash_is_of_the_sorted_lines(monkeypatch, most_merged):
    monkeypatch.setattr(seeds, "LINES_AT_ONCE", 2)
    monkeypatch.setattr(seeds, "MOST_MERGED", most_merged)
    rows = [
        ("b", 1.5, True),
        ("a\nb", None, 'said "yes"'),
        ("a,b", "", "ü"),
        ("a", 1.5, "x"),
        ("a", 1.5, "x!"),
        ("a", 1, "x"),
        ("a!", 1, "x"),
    ]
    lines = [
        "b,1.5,True\n",
        '"a\nb",,"said ""yes"""\n',
        '"a,b",,ü\n',
        "a,1.5,x\n",
        "a,1.5,x!\n",
        "a,1,x\n",
        "a!,1,x\n",
        "b,flag,text\n",
    ]
    assert sha256_of_rows(rows) == hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()
    assert sha256_of_rows([]) == hashlib.sha256(b"b,flag,text\n").hexdigest()


def test_nan_settings_have_one_canonical_form():
    assert seeds.canonical_json({"x": np.nan}) == '{"x":null}'
