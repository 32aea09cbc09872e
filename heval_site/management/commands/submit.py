"""``heval submit BOARD FILE``: submit outputs to a board of any site, wait for the score, and compare it with a baseline."""

import time
import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from heval_site.management.site_client import BoardClient, NotReachable, SiteCommand, read_token, refusal_lines

CHECK_POLL_SECONDS = 3
NO_REGRESSION, FAILED, REGRESSION, UNDECIDED, TIMED_OUT = 0, 1, 2, 3, 4


class Command(SiteCommand):
    help = (
        "Submit a file of outputs to a board, on this site or another. With --wait and --baseline, exit with 2 if the system is shown "
        "to be worse. The token comes from HEVAL_TOKEN or --token-file: the key of a team, or a researcher's token."
    )
    failed = FAILED

    def add_arguments(self, parser):
        parser.add_argument("board", help="The last part of the board's address.")
        parser.add_argument(
            "file",
            type=Path,
            help="A table (CSV, JSON or a workbook) with the columns prompt, output and optionally empty; or a ZIP of images.",
        )
        parser.add_argument("--name", help="The name of the system (default: the file's name).")
        parser.add_argument("--description", default="", help="A description for the board's page.")
        parser.add_argument("--url", default="", help="A web address for the board's page.")
        parser.add_argument("--anonymous", action="store_true", help="Hide the name until the team publishes it.")
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="ROLE=COLUMN",
            help="What a column with another name is: prompt_key=id, text=answer, is_empty=failed. May be repeated.",
        )
        parser.add_argument("--team", help="With a researcher's token: the team that submits.")
        parser.add_argument("--site", help="The address of the site (default: SITE_URL, this site).")
        parser.add_argument("--token-file", type=Path, help="A file with the token, instead of HEVAL_TOKEN.")
        parser.add_argument(
            "--request-token",
            help="A name of this request. Another request with the same name stores nothing and returns the first submission.",
        )
        parser.add_argument("--wait", action="store_true", help="Wait until a snapshot has the score, and print it.")
        parser.add_argument("--timeout", type=float, default=72, metavar="HOURS", help="Give up waiting (default: 72).")
        parser.add_argument("--poll-every", type=float, default=60, metavar="SECONDS", help="Default: 60.")
        parser.add_argument("--baseline", help="With --wait: the name or number of a submission to compare with.")
        parser.add_argument(
            "--max-loss",
            type=float,
            default=0.0,
            metavar="POINTS",
            help="A loss of at most so many points against the baseline is no regression (default: 0).",
        )
        parser.add_argument("--strict", action="store_true", help="Exit with 3 if the interval decides neither.")

    def handle(self, *, board, file, wait, baseline, max_loss, strict, timeout, poll_every, **options):
        if baseline is not None and not wait:
            raise CommandError("--baseline compares scores. Add --wait.")
        if baseline is None and (strict or max_loss):
            raise CommandError("--max-loss and --strict compare with a baseline. Add --baseline.")
        if not 0 <= max_loss <= 100:
            raise CommandError("--max-loss is not between 0 and 100 points. Correct it.")
        if not (timeout > 0 and poll_every > 0):
            raise CommandError("--timeout and --poll-every must be greater than 0. Correct them.")
        client = self.make_client(options["site"] or settings.SITE_URL, board, read_token(options["token_file"]))
        compared = None if baseline is None else _find_submission(client, baseline)
        stored = client.submit(file, _fields(file, options), options["request_token"] or uuid.uuid4().hex)
        if "check" in stored:
            stored = self._wait_for_check(client, stored, timeout * 3600)
        self.stdout.write(f"Submission {stored['number']} “{stored['name']}” is stored: {stored['n_outputs']} outputs.")
        if not wait:
            return
        self.stdout.flush()
        scored = self._wait_for_score(client, stored["number"], timeout * 3600, poll_every)
        self.stdout.write(_score_line(scored))
        if compared is not None:
            code = self._compare(client, scored, compared, max_loss)
            if code == REGRESSION or (code == UNDECIDED and strict):
                raise SystemExit(code)

    def make_client(self, site: str, board: str, token: str) -> BoardClient:
        return BoardClient(site, board, token)

    def _wait_for_check(self, client: BoardClient, check: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Wait until the site has read a large file. Return the submission. Raise CommandError with all problems."""
        end = time.monotonic() + seconds
        self.stdout.write("The site checks the images.")
        self.stdout.flush()
        while check["state"] in ("waiting", "running"):
            if time.monotonic() > end:
                text = "The check has not ended yet. Run the same command again to wait on."
                raise CommandError(text, returncode=TIMED_OUT)
            client.sleep(CHECK_POLL_SECONDS)
            check = client.get(f"checks/{check['check']}/")
        if check["submission"] is None:
            refusal = {"title": "Nothing was stored.", "errors": check["errors"]}
            raise CommandError("\n".join(refusal_lines(400, refusal)))
        return client.get(f"submissions/{check['submission']}/")

    def _wait_for_score(self, client: BoardClient, number: int, seconds: float, poll_every: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        state = ""
        while True:
            try:
                one = client.get(f"submissions/{number}/")
            except NotReachable as error:
                self.stderr.write(f"{error} Waiting goes on.")
            else:
                if one["state"] == "scored":
                    return one
                if one["state"] == "withdrawn":
                    raise CommandError("The submission was withdrawn, so it gets no score. Submit it again.")
                if one["state"] != state:
                    state = one["state"]
                    self.stdout.write(
                        "It waits for the next round." if state == "waiting" else f"It is in round {one['round']}."
                    )
                    self.stdout.flush()
            if time.monotonic() + poll_every > end:
                raise CommandError(
                    f"Submission {number} has no score yet. It keeps its place. Run the same command again to wait on.",
                    returncode=TIMED_OUT,
                )
            client.sleep(poll_every)

    def _compare(self, client: BoardClient, scored: dict[str, Any], baseline: dict[str, Any], max_loss: float) -> int:
        """Print the difference from the baseline and what it shows. Return the exit code that goes with it."""
        found = client.get(f"submissions/{scored['number']}/comparison/", baseline=baseline["number"])
        self.stdout.write(
            f"Baseline: submission {baseline['number']} “{baseline['name']}”, {found['criterion']} score."
        )
        if found["low"] is None:
            self.stdout.write(f"Undecided: there is no interval, because {found['reason']}.")
            return UNDECIDED
        self.stdout.write(
            f"Difference: {found['estimate']:+.1f} {found['unit']}, interval {found['low']:+.1f} to {found['high']:+.1f}. With probability "
            f"{100 * found['level']:g} %, the intervals of all pairs of the {found['systems']} systems hold at once."
        )
        code, text = judge(found["low"], found["high"], max_loss)
        self.stdout.write(text)
        return code


def judge(low: float, high: float, max_loss: float) -> tuple[int, str]:
    """Return the exit code and the sentence for an interval of the difference from a baseline.

    >>> judge(-5.0, -2.5, 2.0)
    (2, 'Regression: the whole interval shows a loss of more than 2 points.')
    >>> judge(-1.5, 3.0, 2.0)
    (0, 'No regression: the whole interval excludes a loss of more than 2 points.')
    >>> judge(-3.0, 1.0, 2.0)[0]
    3
    """
    if high < -max_loss:
        return REGRESSION, f"Regression: the whole interval shows a loss of more than {max_loss:g} points."
    if low >= -max_loss:
        return NO_REGRESSION, f"No regression: the whole interval excludes a loss of more than {max_loss:g} points."
    return UNDECIDED, f"Undecided: a loss of more than {max_loss:g} points is neither shown nor excluded."


def _fields(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    fields = {
        "name": options["name"] or file.stem,
        "description": options["description"],
        "url": options["url"],
        "is_anonymous": "true" if options["anonymous"] else "false",
        "columns": options["map"],
    }
    return fields | ({"team": options["team"]} if options["team"] else {})


def _find_submission(client: BoardClient, name: str) -> dict[str, Any]:
    """Return the submission with this name, or with this number."""
    found = client.get("submissions/", name=name)["results"]
    if not found and name.isdecimal():
        return client.get(f"submissions/{name}/")
    if not found:
        raise CommandError(f"The board has no submission “{name}” that you can see. Correct --baseline.")
    return found[0]


def _score_line(one: dict[str, Any]) -> str:
    key = one["overall"]
    score = one["scores"].get(key) or {"estimate": None, "reason": "it has no answer"}
    if score["estimate"] is None:
        return f"Snapshot {one['snapshot']}: no {key} score, because {score['reason']}."
    # A Bradley-Terry board has ratings beside the chances to win.
    is_rating = "rating_low" in score
    estimate, low, high = ("rating", "rating_low", "rating_high") if is_rating else ("estimate", "low", "high")
    unit = "rating points" if is_rating else "points of 100"
    interval = f", interval {score[low]:.1f} to {score[high]:.1f}" if score[low] is not None else ""
    rank = f", rank {score['rank_low']} to {score['rank_high']}" if score["rank_low"] is not None else ""
    basis = f"{score['labels']} labels, {score['annotators']} annotators, {score['prompts']} prompts"
    return f"Snapshot {one['snapshot']}: {key} score {score[estimate]:.1f} {unit}{interval}{rank} ({basis})."
