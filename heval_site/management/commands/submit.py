"""``heval submit BOARD FILE``: submit outputs to a board of any site, wait for the score, and compare it with a baseline."""

from pathlib import Path
from typing import Any

from heval_site.management.client import WrongUse
from heval_site.management.exit_codes import EXIT_CODES, NO, OPEN, YES
from heval_site.management.site_command import SiteCommand, read_input

HOUR = 3600


class Command(SiteCommand):
    help = (
        "Submit a file of outputs to a board, on this site or another. With --wait and --baseline, exit with 10 if the system is shown "
        "to be worse. With --site, the token comes from HEVAL_TOKEN or --token-file: the key of a team, or a researcher's token. "
        f"{EXIT_CODES}"
    )

    def add_arguments(self, parser):
        parser.add_argument("board", help="The last part of the board's address.")
        parser.add_argument(
            "file",
            help="A table (CSV, JSON or a workbook) with the columns prompt, output and optionally empty; or a ZIP of images. "
            "“-” is the standard input.",
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
        parser.add_argument("--team", help="For members of the board: the team that submits.")
        self.add_site_arguments(parser)
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
        parser.add_argument("--strict", action="store_true", help="Exit with 11 if the interval decides neither.")

    def handle(self, *, board, file, wait, baseline, max_loss, strict, timeout, poll_every, **options):
        if baseline is not None and not wait:
            raise WrongUse("--baseline compares scores. Add --wait.")
        if baseline is None and (strict or max_loss):
            raise WrongUse("--max-loss and --strict compare with a baseline. Add --baseline.")
        if not 0 <= max_loss <= 100:
            raise WrongUse("--max-loss is not between 0 and 100 points. Correct it.")
        if not (timeout > 0 and poll_every > 0):
            raise WrongUse("--timeout and --poll-every must be greater than 0. Correct them.")
        if file == "-" and not options["name"]:
            raise WrongUse("The standard input names no system. Add --name.")
        target = self.connect(options, board=board)[0].board(board)
        compared = None if baseline is None else target.submission(baseline)
        stored = target.submit(
            read_input(file) if file == "-" else file,
            options["name"] or Path(file).stem,
            request_key=options["request_token"] or "",
            timeout=timeout * HOUR,
            is_anonymous="true" if options["anonymous"] else "false",
            columns=options["map"],
            **{name: options[name] for name in ("description", "url", "team")},
        )
        lines = [f"Submission {stored['number']} “{stored['name']}” is stored: {stored['n_outputs']} outputs."]
        code, found = YES, None
        if wait:
            self.say_progress(lines[0])
            stored = target.wait(stored["number"], timeout * HOUR, poll_every)
            lines.append(_score_line(stored))
        if compared is not None:
            found = target.compare(stored["number"], compared["number"])
            code, more = _comparison(found, compared, max_loss)
            lines += more
        if code == OPEN and not strict:
            code = YES
        self.end({"submission": stored, "comparison": found}, lines, code, options)


def _comparison(found: dict[str, Any], baseline: dict[str, Any], max_loss: float) -> tuple[int, list[str]]:
    """Return what the difference from the baseline shows, as an exit code and as lines."""
    head = f"Baseline: submission {baseline['number']} “{baseline['name']}”, {found['criterion']} score."
    if found["low"] is None:
        return OPEN, [head, f"Undecided: there is no interval, because {found['reason']}."]
    numbers = (
        f"Difference: {found['estimate']:+.1f} {found['unit']}, interval {found['low']:+.1f} to {found['high']:+.1f}. With probability "
        f"{100 * found['level']:g} %, the intervals of all pairs of the {found['systems']} systems hold at once."
    )
    code, text = judge(found["low"], found["high"], max_loss)
    return code, [head, numbers, text]


def judge(low: float, high: float, max_loss: float) -> tuple[int, str]:
    """Return the exit code and the sentence for an interval of the difference from a baseline.

    >>> judge(-5.0, -2.5, 2.0)
    (10, 'Regression: the whole interval shows a loss of more than 2 points.')
    >>> judge(-1.5, 3.0, 2.0)
    (0, 'No regression: the whole interval excludes a loss of more than 2 points.')
    >>> judge(-3.0, 1.0, 2.0)[0]
    11
    """
    if high < -max_loss:
        return NO, f"Regression: the whole interval shows a loss of more than {max_loss:g} points."
    if low >= -max_loss:
        return YES, f"No regression: the whole interval excludes a loss of more than {max_loss:g} points."
    return OPEN, f"Undecided: a loss of more than {max_loss:g} points is neither shown nor excluded."


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
