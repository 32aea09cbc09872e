"""A large file is read within a minute and little memory."""

import csv
import os
import subprocess
import sys

import pytest

from tests import ROOT

MEASURED = """
import os, sys, time
os.environ["DJANGO_SETTINGS_MODULE"] = "heval_site.settings"
sys.path.insert(0, {root!r})
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from pathlib import Path
from studies.imports.tables import Options, import_stimuli_file
from studies.models import Arm, Output, Study
study = Study.objects.create(title="large")
Arm.objects.create(study=study, name="all")
began = time.process_time()
report = import_stimuli_file(study, Path({path!r}), options=Options(creates_systems=True), by=None)
assert report.is_written, list(report.problems)[:3]
# Not getrusage: its value begins with the peak of the process that started this one.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time() - began, int(peak) / 1024, Output.objects.count())
"""


@pytest.mark.slow
def test_100_megabytes_and_100_000_rows_fit_in_a_minute_and_300_megabytes(tmp_path):
    path = tmp_path / "large.csv"
    words = "It was a warm day and nobody had seen the fox come down to the river. " * 14
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_key", "prompt_text", "system", "text"])
        for n in range(100_000):
            writer.writerow([f"p{n // 5}", f"Prompt {n // 5}", f"s{n % 5}", f"{n} {words}"])
    assert path.stat().st_size > 95e6
    code = MEASURED.format(root=str(ROOT), path=str(path))
    environment = os.environ | {"HEVAL_HOME": str(tmp_path / "home")}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, megabytes, outputs = map(float, done.stdout.split())
    assert outputs == 100_000 and seconds <= 60 and megabytes <= 300
