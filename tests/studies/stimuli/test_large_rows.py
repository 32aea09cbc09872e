"""Rows of a large file need neither memory nor patience."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

MEASURE = """
import sys, time
from studies.stimuli.rows import read_rows
began = time.perf_counter()
with open(sys.argv[1], "rb") as file:
    rows = read_rows(sys.argv[1], file)
    n = sum(1 for row in rows)
seconds = time.perf_counter() - began
# Not getrusage: its peak includes that of the process which forked this one.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(n, rows.problems.count, int(peak) // 1024, seconds)
"""


def measured(path):
    run = subprocess.run([sys.executable, "-c", MEASURE, path], cwd=ROOT, capture_output=True, text=True, check=True)
    n, problems, megabytes, seconds = run.stdout.split()
    return int(n), int(problems), int(megabytes), float(seconds)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("name", ["big.csv", "big.jsonl"])
def test_a_hundred_megabytes_need_neither_memory_nor_patience(tmp_path, name):
    line = '{"system": "a", "prompt": "p", "text": "%s"}\n' if name.endswith("l") else 'a,p,"%s"\n'
    text = "It was a dark and stormy night. \u6587 " * 28
    with open(tmp_path / name, "w", encoding="utf-8") as file:
        file.write("" if name.endswith("l") else "system,prompt,text\n")
        for _ in range(100_000):
            file.write(line % text)
    assert os.path.getsize(tmp_path / name) > 100_000_000
    n, problems, megabytes, seconds = measured(str(tmp_path / name))
    assert (n, problems) == (100_000, 0)
    assert megabytes < 300
    assert seconds < 60


@pytest.mark.slow
@needs_proc
def test_a_million_rows_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 1_000_000)
    n, problems, megabytes, seconds = measured(str(path))
    assert (n, problems) == (1_000_000, 0)
    assert megabytes < 300 and seconds < 60
