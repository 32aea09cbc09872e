"""``heval study VERB``: all that can be done to one study, on this site or another, by the client of ``heval_site.management.client``."""

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from heval_site.management.client import Site, Study, Verdict, WrongUse
from heval_site.management.client.operations import split_link
from heval_site.management.client.tables import parse_json
from heval_site.management.exit_codes import EXIT_CODES, NO, OF_VERDICT, OPEN, YES
from heval_site.management.rehearsal_lines import report_lines
from heval_site.management.site_command import SiteCommand, read_input

TABLES = json.loads(files("heval_site.management.client").joinpath("acts.json").read_text(encoding="utf-8"))
ACTS = TABLES["acts"]
TYPES = {"str": str, "int": int, "float": float}
SEVERITIES = {"block": "No claim", "warn": "Warning", "info": "Note"}
HOUR = 3600
# The verbs that need the database of the site, with their modules.
ON_SERVER = {"simulate": "robots", "reconcile": "panel_submissions"}
ROBOTS = {
    "acquiescent": "Share of robots that favour the system named first.",
    "screened-out": "Share of robots that fail screening.",
    "abandoning": "Share of robots that leave before the last page.",
    "careless": "Share of robots that answer at random.",
    "right": "How often careless robots answer a test question right, from 0 to 1 (default: at random).",
    "batches": "Median number of batches of a robot, as far as the study has so many for it (default: 1).",
    "activity": "Standard deviation of the logarithm of this number (default: 0, all robots alike).",
}
# What a verb gives: what --json prints, the lines for a person, and the exit code.
Result = tuple[Any, list[str], int]


class Command(SiteCommand):
    help = (
        "Do one thing to a study, on the server or, with --site and a token in HEVAL_TOKEN, on another site. STUDY is a code, the "
        f"beginning of one, or a title; “-” as a file is the standard input. {EXIT_CODES}"
    )

    def add_arguments(self, parser):
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

        def add(name: str, text: str, is_about_study: bool = True) -> Any:
            verb = verbs.add_parser(name, help=text, description=text)
            if is_about_study:
                verb.add_argument(
                    "study", metavar="STUDY", help="The study's code, the beginning of its code, or title."
                )
            self.add_site_arguments(verb)
            return verb

        verb = add("create", "Make a draft, and print its code.", is_about_study=False)
        verb.add_argument("title", metavar="TITLE", nargs="?", default="", help="Default: that of the template.")
        verb.add_argument(
            "--outputs",
            action="append",
            default=[],
            metavar="NAME=FILE",
            help="The outputs of one system. May be repeated.",
        )
        verb.add_argument("--table", metavar="FILE", help="One table with the outputs of all systems.")
        verb.add_argument("--map", action="append", default=[], metavar="ROLE=COLUMN", help="What a column is.")
        verb.add_argument("--ask", default="", metavar="CARD", help="What is asked, such as two_choice.")
        verb.add_argument("--criterion", default="", help="The criterion of the question, such as overall.")
        verb.add_argument("--baseline", help="The system with which the others are compared (default: all pairs).")
        verb.add_argument("--people", type=int, help="How many must answer.")
        verb.add_argument("--pages", type=int, help="Pages for each person.")
        verb.add_argument("--minutes", type=int, help="Minutes for each person.")
        verb.add_argument("--reward", help="Pay for each person, such as 1.50.")
        verb.add_argument("--public-title", default="", help="What annotators see at the top of each page.")
        verb.add_argument("--facts", metavar="FILE", help="A JSON object: what the texts for annotators say about you.")
        verb.add_argument("--template", default="", metavar="KEY", help="Make it of this template.")
        verb.add_argument("--bundle", metavar="FILE", help="Make it of this bundle.")
        add("check", "Print what a draft lacks, and warnings with their keys. Exit with 10 if it cannot be launched.")
        verb = add(
            "plan",
            "Print what a study of this size can find, and what it costs. The plan is simulated and stored. Exit with 10 if the study "
            "has not the wanted power.",
        )
        verb.add_argument("--quick", action="store_true", help="Only approximate numbers; store nothing.")
        for value in TABLES["plan"]:
            verb.add_argument(
                f"--{value['name'].replace('_', '-')}", type=TYPES[value["type"]], metavar="X", help=value["help"]
            )
        verb = add(
            "preview",
            "Print where members look at the pages as annotators will see them. With --report, robots answer a copy of a draft, and what "
            "their report says is printed.",
        )
        verb.add_argument("--report", action="store_true", help="Make a report with invented answers.")
        verb.add_argument("--equal", action="store_true", help="With --report: the systems are equally good.")
        verb = add(
            "rehearse",
            "Rehearse a link with robots against a stand-in of its panel, in a copy that is deleted. Exit with 10 if something was not as "
            "expected.",
        )
        verb.add_argument("--link", default="", metavar="KEY", help="The link (default: the only one).")
        verb.add_argument("--people", type=int, default=12, help="How many robots come.")
        verb.add_argument("--seed", type=int, default=0, help="Seed of the robots' answers.")
        verb = add("launch", "Launch a draft.")
        verb.add_argument(
            "--acknowledge",
            action="append",
            default=[],
            metavar="KEY",
            help="Accept this warning of check. May be repeated.",
        )
        verb = add(
            "translation", "Print which words a study's pages have around its texts, or give a draft a file of them."
        )
        one = verb.add_mutually_exclusive_group()
        one.add_argument("--get", action="store_true", help="Print them as a PO file, to translate it.")
        one.add_argument("--file", metavar="FILE.po", help="Give the draft the words of this file.")
        one.add_argument("--remove", action="store_true", help="Remove the file from the draft.")
        verb = add("link", "Make a link by which people come, and print its address.")
        verb.add_argument("--channel", default="open_link", help="Default: open_link.")
        verb.add_argument("--wanted", type=int, help="How many people may come by it.")
        verb.add_argument("--reward", help="Pay for each person, such as 1.50.")
        for act in ACTS:
            verb = add(act["name"], f"{act['label']}. {act['help']}")
            for field in act["fields"]:
                verb.add_argument(
                    f"--{field['name'].replace('_', '-')}",
                    type=TYPES[field["type"]],
                    choices=field["choices"] or None,
                    required=field["is_required"] and field["default"] is None,
                    default=field["default"],
                    help=field["help"],
                )
        verb = add("amend", "Change words, pay or minutes of a launched study. Later annotators get the new version.")
        verb.add_argument(
            "file",
            metavar="FILE",
            help='A JSON object with study, arms or questions, such as {"study": {"contact": "…"}}.',
        )
        verb.add_argument("--reason", required=True, help="The study's log keeps it.")
        verb = add("pay", "Print the pay by hour and the cost of each link. With --json, also all payments.")
        verb.add_argument(
            "--settle", action="store_true", help="First record what is due by each link. It orders and pays nothing."
        )
        verb.add_argument("--dry-run", action="store_true", help="With --settle: only count, and record nothing.")
        verb.add_argument("--link", metavar="KEY", help="With --settle: only this link.")
        add("status", "Print the state of a study and how many people answered.")
        verb = add("wait", "Wait until a study is closed, or has its people.")
        verb.add_argument("--until", choices=("closed", "target"), default="closed", help="Default: closed.")
        verb.add_argument("--timeout", type=float, default=72, metavar="HOURS", help="Give up waiting (default: 72).")
        verb.add_argument("--poll-every", type=float, default=60, metavar="SECONDS", help="Default: 60.")
        verb = add("report", "Run an analysis, and print its conclusions.")
        verb.add_argument("--origins", help="Answers to count, separated by commas.")
        verb.add_argument("--level", type=float, help="Confidence level.")
        verb.add_argument("--resamples", type=int, help="Number of resamples.")
        verb.add_argument("--star-scheme", metavar="SCHEME", help="Which p-values have stars.")
        verb.add_argument(
            "--deltas",
            type=float,
            nargs="+",
            metavar="DELTA",
            help="Two choices: further values of delta, such as .01.",
        )
        verb = add(
            "compare",
            "Compare closed studies that ask the same question, keep the result with the first, and print what it says. A study may also "
            "be one of its links, as STUDY:LINK.",
        )
        verb.add_argument("other", metavar="OTHER", nargs="+", help="Another study, or one of its links.")
        verb.add_argument(
            "--comparison",
            action="append",
            help="If the studies compare different systems: the name of the comparison of each study, in their order.",
        )
        verb.add_argument("--origins", help="Answers to count, separated by commas.")
        verb.add_argument("--level", type=float, help="Confidence level.")
        verb = add(
            "verdict",
            "Say whether the newest report shows a claim. Exit with 0 for yes, 10 for no and 11 if it is open.",
        )
        verb.add_argument(
            "claim", metavar="CLAIM", nargs="?", help="Such as “new beats old” (default: all that were planned)."
        )
        verb = add("export", "Print a file of the study's data, or write it with --output.")
        verb.add_argument(
            "file",
            metavar="FILE",
            help="Such as responses.csv, scores.parquet, payments.csv, archive.zip or report.pdf.",
        )
        verb.add_argument("--output", type=Path, help="The file to write.")
        verb.add_argument("--origins", help="Answers to export, separated by commas.")
        verb.add_argument("--withdrawn", action="store_true", help="Include the rows of people who withdrew.")
        verb.add_argument("--raw", action="store_true", help="Write CSV without the apostrophe before formulas.")
        verb.add_argument("--analysis", type=int, help="Of report.pdf: the number of the report (default: the newest).")
        add("log", "Print who did what to the study.")
        self._add_verbs_of_the_server(verbs)

    @staticmethod
    def _add_verbs_of_the_server(verbs: Any) -> None:
        def add(name: str, text: str) -> Any:
            verb = verbs.add_parser(name, help=text, description=f"{text} Only on the server.")
            verb.add_argument("study", metavar="STUDY", help="The study's code, the beginning of its code, or title.")
            verb.add_argument("--json", action="store_true", help="Print JSON.")
            return verb

        verb = add(
            "simulate",
            "Let robots with known preferences answer a launched study like annotators. They take real places. If the study has a "
            "stopping rule, no more robots are sent after it would have decided.",
        )
        verb.add_argument("--robots", type=int, default=100, help="Number of robots.")
        verb.add_argument(
            "--prefer",
            action="append",
            default=[],
            metavar="SYSTEM=LOGIT",
            help="Strength of a system in log-odds; repeat for each system (default: half a point apart, by name).",
        )
        verb.add_argument("--seed", type=int, help="Seed of the robots' answers (default: that of the study).")
        for name, text in ROBOTS.items():
            verb.add_argument(f"--{name}", type=float, metavar="X", help=text)
        verb = add("reconcile", "Compare a panel's submissions with heval's assignments, and send waiting orders.")
        verb.add_argument("--link", default="", metavar="KEY", help="The link (default: the only one).")
        verb.add_argument("--file", help="The panel's exported file, to read instead of asking its service.")
        verb.add_argument(
            "--dry-run", action="store_true", help="Show what would change, without changing or ordering anything."
        )

    def handle(self, *, verb, **options):
        if verb in ON_SERVER:
            import heval_site.wsgi  # noqa: F401 - it sets Django up
            from heval_site.management.find_study import find_study

            module = import_module(f"heval_site.management.{ON_SERVER[verb]}")
            data, lines = getattr(module, verb)(find_study(options["study"]), options)
            self.end(data, lines, YES, options)
            return
        do: Callable[..., Result] = (
            partial(_act, next(act for act in ACTS if act["name"] == verb))
            if verb in {act["name"] for act in ACTS}
            else globals()[f"_{verb}"]
        )
        if verb == "compare":
            options["study"], options["link"] = split_link(options["study"])
        site, code = self.connect(options, options.get("study", ""))
        self.end(*do(Study(site, code) if code else site, options), options)


def _create(site: Site, options: dict[str, Any]) -> Result:
    outputs: Any = read_input(options["table"]) if options["table"] == "-" else options["table"]
    for text in options["outputs"]:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise WrongUse(f"--outputs {text} names no system. Write NAME=FILE, such as new=new.jsonl.")
        outputs = {**(outputs or {}), name: read_input(path) if path == "-" else path}
    study = site.create(
        options["title"],
        outputs,
        columns=options["map"],
        m=options["pages"],
        facts=parse_json(read_input(options["facts"]), options["facts"]) if options["facts"] else None,
        bundle=parse_json(read_input(options["bundle"]), options["bundle"]) if options["bundle"] else None,
        **{
            name: options[name]
            for name in ("ask", "criterion", "baseline", "people", "minutes", "reward", "public_title", "template")
        },
    )
    return {"code": study.code}, [study.code], YES


def _check(study: Study, options: dict[str, Any]) -> Result:
    found = study.check()
    lines = [f"Missing: {one.text}" for one in found.missing]
    lines += [f"Warning: {one.text} [{one.key}]" for one in found.warnings]
    data = [{"key": one.key, "text": one.text, "is_blocking": one.is_blocking} for one in found.problems]
    lines = lines or ["Nothing is missing."]
    return data, [*lines, f"The page on which a person launches it: {found.page}"], NO if found.missing else YES


def _plan(study: Study, options: dict[str, Any]) -> Result:
    found = study.plan(options["quick"], **_given(options, *(one["name"] for one in TABLES["plan"])))
    return found.data, [*found.sentences, *found.advice], YES if found.has_wanted_power else NO


def _preview(study: Study, options: dict[str, Any]) -> Result:
    if not options["report"]:
        found = study.preview()
        return found, [found["pages"]], YES
    result = study.invented_report(are_systems_equal=options["equal"])
    return result, _conclusions(result), YES


def _rehearse(study: Study, options: dict[str, Any]) -> Result:
    report = study.rehearse(options["link"], people=options["people"], seed=options["seed"])
    return report, list(report_lines(report)), YES if report["is_ok"] else NO


def _amend(study: Study, options: dict[str, Any]) -> Result:
    changes = parse_json(read_input(options["file"]), options["file"])
    if not isinstance(changes, dict):
        raise WrongUse(f"{options['file']} is not a JSON object. Give one with study, arms or questions.")
    design = study.amend(**{**changes, "reason": options["reason"]})
    return design, [f"The design has version {design['version']}."], YES


def _pay(study: Study, options: dict[str, Any]) -> Result:
    found = study.pay()
    lines = []
    if options["settle"]:
        keys = [options["link"]] if options["link"] else [link["link"] for link in found["links"]]
        settled = {key: study.settle(key, options["dry_run"]) for key in keys}
        lines = [
            f"link {key}: {one['due']} newly due: {one['amount']} {one['currency']}. {one['paid']} found paid, {one['cancelled']} cancelled."
            for key, one in settled.items()
        ]
        found = {**study.pay(), "settled": settled}
    currency = found["currency"]
    lines += [
        f"{arm['arm']}: n = {arm['people']}"
        + (f", median {arm['per_hour']['median']} {currency} an hour" if arm["per_hour"] else "")
        for arm in found["arms"]
    ]
    sums = ("paid", "ordered", "due", "unrecorded", "to_come", "total")
    for link in found["links"]:
        amounts = ", ".join(f"{link[name]} {name.replace('_', ' ')}" for name in sums if link[name] is not None)
        lines.append(f"link {link['link']}: {amounts} {link['currency']}")
    return found, lines or ["The study has no link."], YES


def _launch(study: Study, options: dict[str, Any]) -> Result:
    launched = study.launch(options["acknowledge"])
    return launched, [f"The study is {launched['state']}."], YES


def _translation(study: Study, options: dict[str, Any]) -> Result:
    if options["get"]:
        sys.stdout.buffer.write(study.translation_file())
        return None, [], YES
    if options["file"]:
        found = study.use_translation(read_input(options["file"]))
    else:
        found = study.remove_translation() if options["remove"] else study.translation()
    n = found["messages"] - found["untranslated"]
    origin = {"heval": "those of heval", "file": "from a file"}[found["origin"]]
    return found, [f"{found['language']}, {origin}: {n} of {found['messages']} messages"], YES


def _link(study: Study, options: dict[str, Any]) -> Result:
    sent = {name: options[name] for name in ("wanted", "reward") if options[name] is not None}
    link = study.link(options["channel"], **sent)
    return link.data, [link.address, *(f"Missing: {text}" for text in link.missing)], YES


def _act(act: dict[str, Any], study: Study, options: dict[str, Any]) -> Result:
    result = study.act(
        act["name"], **{one["name"]: value for one in act["fields"] if (value := options[one["name"]]) is not None}
    )
    shown = (result.get(name) for name in ("outcome", "state", "address", "key", "removed"))
    line = str(next((value for value in shown if value), "Done."))
    return result, [result["code"] if act["name"] == "clone" else line], YES


def _status(study: Study, options: dict[str, Any]) -> Result:
    found = study.status()
    wanted = found["target_n"] or found["places"]
    lines = [
        f"{found['title']}: {found['state']}",
        f"{found['counted']} of {wanted} people, {found['free']} places free",
    ]
    return found, lines, YES


def _wait(study: Study, options: dict[str, Any]) -> Result:
    if not (options["timeout"] > 0 and options["poll_every"] > 0):
        raise WrongUse("--timeout and --poll-every must be greater than 0. Correct them.")
    found = study.wait(options["until"], options["timeout"] * HOUR, options["poll_every"])
    return found, [f"The study is {found['state']}, with {found['counted']} people."], YES


def _report(study: Study, options: dict[str, Any]) -> Result:
    run = study.analyse(**_given(options, "level", "resamples", "star_scheme", "deltas", "origins"))
    end = f"Analysis {run['number']}, result SHA-256 {run['result_sha256']}"
    return run, [*_conclusions(run["result"]), end], YES


def _given(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the options that are given. Origins are a list."""
    sent = {name: options[name] for name in names if options[name] is not None}
    if "origins" in sent:
        sent["origins"] = [name.strip() for name in sent["origins"].split(",")]
    return sent


def _conclusions(result: dict[str, Any]) -> list[str]:
    lines = []
    for one in result["conclusions"]:
        lines += [
            f"{one['claim']} {one['text']}",
            *(f"  {SEVERITIES[w['severity']]}: {w['text']}" for w in one["warnings"]),
        ]
    return [*lines, result["outcomes"]["reason"]] if result["outcomes"]["is_hidden"] else lines


def _compare(study: Study, options: dict[str, Any]) -> Result:
    sent = {"comparisons": options["comparison"]} if options["comparison"] else {}
    found = study.compare(options["other"], link=options["link"], **sent, **_given(options, "origins", "level"))
    end = f"Comparison {found['number']}, result SHA-256 {found['result_sha256']}"
    return found, [*found["result"]["sentences"], end], YES


def _verdict(study: Study, options: dict[str, Any]) -> Result:
    found: list[Verdict] = [study.claim(options["claim"])] if options["claim"] else study.verdicts()
    data = [
        {
            name: getattr(one, name)
            for name in ("claim", "verdict", "sentence", "numbers", "pvalue", "warnings", "analysis")
        }
        for one in found
    ]
    lines = [f"{one.verdict}: {one.sentence} {one.numbers}".rstrip() for one in found]
    codes = {OF_VERDICT[one.verdict] for one in found}
    code = next((code for code in (NO, OPEN, YES) if code in codes), OPEN)
    return data, lines or ["open: The report has no planned comparison."], code


def _export(study: Study, options: dict[str, Any]) -> Result:
    flags = {name: "1" for name in ("withdrawn", "raw") if options[name]}
    chosen = {name: options[name] for name in ("origins", "analysis") if options[name] is not None}
    output = options["output"]
    if output is None:
        sys.stdout.buffer.write(study.export(options["file"], **flags, **chosen))
        return None, [], YES
    try:
        study.export(options["file"], output, **flags, **chosen)
        size = output.stat().st_size
    except OSError as error:
        raise WrongUse(f"{output} cannot be written: {error.strerror}. Name another file.") from None
    return {"file": str(output), "bytes": size}, [f"{size} bytes are in {output}."], YES


def _log(study: Study, options: dict[str, Any]) -> Result:
    rows = study.log()
    return rows, [f"{one['at']} {one['by'] or '-'}: {one['verb']}" for one in rows], YES
