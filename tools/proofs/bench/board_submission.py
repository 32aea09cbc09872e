"""What a submission of many outputs costs over REST, from the request to the stored rows.

    python -m tools.proofs.bench.board_submission [--outputs 10000] [--characters 500] [--profile]

It makes a board in a new SQLite database, sends the outputs as JSON and as a file, and prints the seconds of each.
"""

import argparse
import cProfile
import json
import os
import pstats
import tempfile
import time


def set_up(folder: str) -> None:
    """Configure Django with a new database in this folder. SQLite on a disk, as in a small installation."""
    os.environ["HEVAL_HOME"] = folder
    os.environ.pop("DATABASE_URL", None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "heval_site.settings"
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)


def board_of(n: int):
    """An open board with ``n`` prompts."""
    from studies.models import Prompt
    from tests.boards import builders
    from tests.builders import user

    owner = user("owner")
    template = builders.rating_template(owner, systems=(), prompts=1)
    Prompt.objects.bulk_create(Prompt(study=template, key=f"q{number:06}", text="A prompt.") for number in range(n - 1))
    return builders.open_board(owner, template)


def measured(what: str, work, is_profiled: bool):
    profile = cProfile.Profile() if is_profiled else None
    started = time.perf_counter()
    answer = profile.runcall(work) if profile else work()
    taken = time.perf_counter() - started
    assert answer.status_code == 201, answer.content[:500]
    print(f"{what:5} {answer.json()['n_outputs']:>7,} outputs in {taken:5.2f} s")
    if profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--characters", type=int, default=500)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        set_up(folder)
        from django.core.files.uploadedfile import SimpleUploadedFile
        from django.test import Client

        from boards.access import create_team

        board = board_of(chosen.outputs)
        _, key = create_team(board, board.owner, "Team")
        text = "word " * (chosen.characters // 5)
        rows = [{"prompt": prompt, "output": f"{prompt} {text}"} for prompt in board.sample_keys]
        address = f"/api/v1/boards/{board.slug}/submissions/"
        headers = {"Authorization": f"Token {key}", "Host": "127.0.0.1"}
        client = Client()
        body = json.dumps({"name": "as JSON", "outputs": rows})
        measured(
            "JSON",
            lambda: client.post(address, body, content_type="application/json", headers=headers),
            chosen.profile,
        )
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        file = SimpleUploadedFile("outputs.jsonl", lines)
        measured(
            "file", lambda: client.post(address, {"name": "a file", "file": file}, headers=headers), chosen.profile
        )


if __name__ == "__main__":
    main()
