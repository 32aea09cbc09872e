"""The process that recomputes an archive: ``python -m heval_site.rerun FILE``, started by ``heval rerun`` with a home of its own.

It prints one JSON value to its standard output, and what it does to its standard error.
"""

import json
import os
import sys
from pathlib import Path


def main(file: str) -> int:
    os.environ["DJANGO_SETTINGS_MODULE"] = "heval_site.settings"
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from analysis.report.archive_rows import ArchiveRefused
    from analysis.report.rerun import rerun_archive

    call_command("migrate", interactive=False, verbosity=0)
    owner = get_user_model().objects.create_user("rerun")
    try:
        result = rerun_archive(Path(file), owner, lambda text: sys.stderr.write(f"{text}\n"))
    except ArchiveRefused as refused:
        result = {"refused": str(refused)}
    sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
