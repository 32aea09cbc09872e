"""What it costs until a command works, and what a new site costs: seconds of CPU of the least busy round.

    python -m tools.proofs.bench.starts [--rounds 5] [--bounds]

Each is a process of its own. A first one, which is not counted, compiles what Python has not compiled yet. With ``--bounds`` it fails if a
bound is broken.
"""

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

from tests.golden_site.stored import SECRETS
from tools.proofs.bench.machine import folder

COMMAND = ("-m", "heval_site.management.cli")
# What runs, whether in a new home, and the bound.
STARTS = {
    "the applications are loaded": (("-c", "import django; django.setup()"), False, 1.0),
    "a command of a site that is not there": ((*COMMAND, "judge", "x", "--site", "http://127.0.0.1:9"), False, 0.5),
    "`heval prepare` of a prepared site": ((*COMMAND, "prepare"), False, 3.0),
    "`heval prepare` of a new site": ((*COMMAND, "prepare"), True, 12.0),
}


def cpu_seconds(words: tuple[str, ...], home: Path) -> float:
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(home), "HEVAL_TOKEN": "none", **SECRETS}
    environment |= {"DJANGO_SETTINGS_MODULE": "heval_site.settings", "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], env=environment, check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bounds", action="store_true")
    chosen = parser.parse_args()
    broken = []
    with folder("heval-starts-") as work:
        prepared = work / "prepared"
        cpu_seconds((*COMMAND, "prepare"), prepared)
        for name, (words, is_new, bound) in STARTS.items():
            cpu_seconds(words, prepared)
            found = sorted(cpu_seconds(words, work / f"new-{n}" if is_new else prepared) for n in range(chosen.rounds))
            print(f"{name:40} {found[0]:5.2f} s (to {found[-1]:.2f}), bound {bound:g}", flush=True)
            if found[0] > bound:
                broken.append(name)
    if chosen.bounds and broken:
        sys.exit(f"Slower than the bound: {', '.join(broken)}")


if __name__ == "__main__":
    main()
