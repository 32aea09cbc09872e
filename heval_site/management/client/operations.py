"""What can be done to a study: each operation yields its calls and pauses, and returns its result."""

import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .calls import NOT_MODIFIED, NotReachable, Pause, Refused, Steps, TimedOut, WrongUse, ask, send
from .results import Checklist, Link, Plan, Problem, Verdict
from .tables import Outputs, as_upload, read_file

JOB_SECONDS = 3600.0
WAIT_SECONDS = 72 * 3600.0
POLL_SECONDS = 60.0
# How long a site holds a request, and a request that it did not hold.
HOLD_SECONDS, SHORT_SECONDS = 30, 1.0
OPEN_STATES = ("waiting", "running")


def rows_of(path: str, **parameters: Any) -> Steps[list[dict[str, Any]]]:
    """Return all rows of a list, from all its pages."""
    page = yield from ask("GET", path, parameters=parameters)
    rows = list(page["results"])
    while page["next"]:
        query = page["next"].partition("?")[2]
        page = yield from ask("GET", f"{path}?{query}")
        rows += page["results"]
    return rows


def find_study(name: str) -> Steps[str]:
    """Return the code of the study with this title, code, or beginning of a code. A title has priority."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        studies = yield from rows_of("studies/", page_size=1000)
    digits = name.strip().lower().replace("-", "")
    found = [one["code"] for one in studies if one["title"] == name]
    if not found and digits:
        found = [one["code"] for one in studies if one["code"].replace("-", "").startswith(digits)]
    if not found:
        raise WrongUse(f"There is no study {name}. Give its code, the beginning of its code, or its title.")
    if len(found) > 1:
        raise WrongUse(f"More than one study matches {name}. Give one of the codes: {', '.join(sorted(found))}.")
    return found[0]


def create(
    title: str = "",
    outputs: Outputs | None = None,
    ask_card: str = "",
    *,
    template: str = "",
    bundle: Mapping[str, Any] | None = None,
    people: int | None = None,
    question: Mapping[str, Any] | None = None,
    texts: Mapping[str, Any] | None = None,
    columns: Iterable[str] = (),
    fields: Mapping[str, Any] | None = None,
) -> Steps[str]:
    """Make a draft, and return its code. If a step is refused, the draft is deleted, or archived if the log names it.

    If that is refused, too, the refusal names the draft that is left.
    """
    upload = None if outputs is None else as_upload(outputs)
    sent = {"title": title, "template": template, "bundle": bundle, "target_n": people, **(fields or {})}
    study = yield from ask("POST", "studies/", {name: value for name, value in sent.items() if value not in (None, "")})
    at = f"studies/{study['code']}/"
    try:
        if upload is not None:
            yield from _import_outputs(at, upload, list(columns))
        if ask_card or question:
            yield from ask("POST", f"{at}question/", {"card": ask_card, **(question or {})})
        if texts:
            yield from ask("POST", f"{at}texts/", dict(texts))
    except Refused as refused:
        try:
            yield from ask("DELETE", at)
        except Refused:
            left = f"{refused.detail} The unfinished draft {study['code']} is left: go on with it, or delete it."
            raise Refused(refused.status, left, refused.errors) from None
        raise
    return study["code"]


def _import_outputs(at: str, upload: tuple[str, bytes], columns: list[str]) -> Steps[None]:
    settings = {"creates_systems": True, "proposes_columns": not columns, "columns": columns}
    form = {"settings": json.dumps(settings)}
    report = yield from ask("POST", f"{at}imports/", form=form, file=upload)
    for wait in _growing_waits():
        if report["state"] not in OPEN_STATES:
            break
        yield Pause(wait, "The site reads the outputs.")
        report = yield from ask("GET", f"{at}imports/{report['id']}/")
    if report["errors"]:
        lines = [
            f"row {one['row']}: {one['message']}" if one.get("row") else one["message"] for one in report["errors"]
        ]
        raise Refused(400, "\n  ".join(["The outputs were not imported.", *lines]))


def _growing_waits() -> Iterator[float]:
    wait = 0.5
    while True:
        yield wait
        wait = min(2 * wait, 10.0)


def finish_job(code: str, job: Mapping[str, Any], timeout: float = JOB_SECONDS) -> Steps[dict[str, Any]]:
    """Wait for a job, and return it. Raise Refused if it failed, and TimedOut."""
    end, pauses = time.monotonic() + timeout, _growing_waits()
    one, known, pause = dict(job), "", 0.0
    while one["state"] in OPEN_STATES:
        if time.monotonic() + pause > end:
            raise TimedOut(f"The job {one['kind']} has not ended yet. It goes on; ask for its result later.")
        yield Pause(pause, one["doing"] or f"The job {one['kind']} is {one['state']}.")
        at, left = f"studies/{code}/jobs/{one['code']}/", end - time.monotonic()
        news, known, needs_pause = yield from _ask_for_news(at, known, left)
        one |= news
        pause = next(pauses) if needs_pause else 0.0
    if one["state"] != "done":
        raise Refused(409, one["error"] or f"The job {one['kind']} is {one['state']}.")
    return one


def _ask_for_news(path: str, known: str, seconds: float) -> Steps[tuple[dict[str, Any], str, bool]]:
    """Ask for what can wait. With its last ETag the site holds the request until something changes.

    Return the resource, or {} if nothing has changed, its ETag, and whether to pause, because the site did not hold the request.
    """
    began, hold = time.monotonic(), {"wait": max(0, int(min(HOLD_SECONDS, seconds)))}
    response = yield from send("GET", path, headers={"If-None-Match": known}, parameters=hold)
    etag, is_short = response.headers.get("etag", ""), time.monotonic() - began < SHORT_SECONDS
    # The first answer comes at once, and says with which ETag the next request is held.
    needs_pause = is_short and bool(known or not etag)
    return {} if response.status == NOT_MODIFIED else response.json(), etag, needs_pause


def _do_job(
    code: str, path: str, body: Mapping[str, Any] | None = None, timeout: float = JOB_SECONDS
) -> Steps[dict[str, Any]]:
    """Start a job, wait for it, and return it."""
    job = yield from ask("POST", f"studies/{code}/{path}", body)
    return (yield from finish_job(code, job, timeout))


def check(code: str) -> Steps[Checklist]:
    found = yield from ask("GET", f"studies/{code}/checklist/")
    problems = (Problem(one["key"], one["text"], one["is_blocking"]) for one in found["problems"])
    return Checklist(tuple(problems), found["page"], tuple(found["populations"]))


def launch(
    code: str, acknowledged: Iterable[Problem | str] = (), timeout: float = JOB_SECONDS
) -> Steps[dict[str, Any]]:
    """Launch a draft, and return the study."""
    keys = [one.key if isinstance(one, Problem) else one for one in acknowledged]
    yield from _do_job(code, "launch/", {"acknowledged": keys}, timeout)
    return (yield from ask("GET", f"studies/{code}/"))


def link(code: str, channel: str, **fields: Any) -> Steps[Link]:
    made = yield from ask("POST", f"studies/{code}/links/", {"channel": channel, **fields})
    return _link(made)


def links(code: str) -> Steps[list[Link]]:
    return [_link(one) for one in (yield from rows_of(f"studies/{code}/links/"))]


def _link(data: dict[str, Any]) -> Link:
    return Link(data["address"], data["key"], data["state"], tuple(data["missing"]), data)


def act(code: str, name: str, values: Mapping[str, Any] | None = None) -> Steps[dict[str, Any]]:
    """Do an act on a whole study, such as ``pause``. ``acts.json`` lists them with their values."""
    if name == "delete":
        return (yield from ask("DELETE", f"studies/{code}/"))
    return (yield from ask("POST", f"studies/{code}/{name}/", dict(values or {})))


def status(code: str) -> Steps[dict[str, Any]]:
    """Return the study's title and state, and the counts of its places and assignments."""
    study = yield from ask("GET", f"studies/{code}/")
    progress = yield from ask("GET", f"studies/{code}/progress/")
    return {"code": code, "title": study["title"], **progress}


def wait(
    code: str, until: str = "closed", timeout: float = WAIT_SECONDS, poll: float = POLL_SECONDS
) -> Steps[dict[str, Any]]:
    """Wait until a study is ``closed`` or, with ``target``, has its people, and return its status. Raise TimedOut.

    The site holds each request until something changes. If it does not, the next request is after ``poll`` seconds.
    """
    if until not in ("closed", "target"):
        raise WrongUse(f"A study cannot be waited for until “{until}”. Use closed or target.")
    end, known = time.monotonic() + timeout, ""
    found: dict[str, Any] = {}
    while True:
        at, left, pause = f"studies/{code}/progress/", min(poll, end - time.monotonic()), poll
        try:
            if not found:
                found = yield from status(code)
            news, known, needs_pause = yield from _ask_for_news(at, known, left)
        except NotReachable as error:
            reason = str(error)
        else:
            found |= news
            pause = poll if needs_pause else 0.0
            has_target = found["target_n"] is not None and found["counted"] >= found["target_n"]
            if found["state"] == "closed" or (until == "target" and has_target):
                return found
            if found["state"] == "draft":
                raise WrongUse("The study is a draft, so nobody can answer. Launch it first.")
            reason = f"{found['state']}: {found['counted']} of {found['target_n'] or found['places']} people"
        if time.monotonic() + pause > end:
            raise TimedOut(f"The study is not ready yet ({reason}). It goes on; wait again later.")
        yield Pause(pause, reason)


def analyse(code: str, timeout: float = JOB_SECONDS, **parameters: Any) -> Steps[dict[str, Any]]:
    """Run an analysis, and return it with its result."""
    done = yield from _do_job(code, "analyses/", parameters, timeout)
    return (yield from ask("GET", f"studies/{code}/analyses/{done['result']['number']}/"))


def compare(
    code: str, others: Iterable[str], timeout: float = JOB_SECONDS, link: str = "", **parameters: Any
) -> Steps[dict[str, Any]]:
    """Compare closed studies with the same question, or their links as ``STUDY:LINK``, and return the comparison with its result."""
    named = [f"{code}:{link}" if link else code]
    for other in others:
        name, key = split_link(other)
        found = yield from find_study(name)
        named.append(f"{found}:{key}" if key else found)
    done = yield from _do_job(code, "comparisons/", {"studies": named, **parameters}, timeout)
    return (yield from ask("GET", f"studies/{code}/comparisons/{done['result']['number']}/"))


def split_link(named: str) -> tuple[str, str]:
    """Return the name of the study and the key of the link, or "" for a whole study.

    >>> split_link("Students:4be1c09a77d2"), split_link("Which is better: a study")
    (('Students', '4be1c09a77d2'), ('Which is better: a study', ''))
    """
    name, _, link = named.rpartition(":")
    return (name, link) if name and link.isalnum() else (named, "")


def plan(code: str, values: Mapping[str, Any], is_quick: bool = False, timeout: float = JOB_SECONDS) -> Steps[Plan]:
    """Return what a study of this size can find, and what it costs: approximate numbers, and a plan that is simulated and stored.

    ``values`` differ from those of the draft. The prior ``pilot:CODE`` reads the answers of another study first.
    """
    prior, pilot, study = str(values.get("prior", "")).partition("pilot:")
    if pilot and not prior:
        found = yield from find_study(study)
        yield from _do_job(code, "plans/pilots/", {"pilot": found}, timeout)
        values = {**values, "prior": f"pilot:{found}"}
    numbers = yield from ask("GET", f"studies/{code}/plans/numbers/", parameters=values)
    stored, power = None, numbers["power"]
    if not is_quick:
        done = yield from _do_job(code, "plans/", values, timeout)
        stored = yield from ask("GET", f"studies/{code}/plans/{done['result']['plan']}/")
        power = stored["result"]["plan"]["planned"]["power"]
    has_power = power >= numbers["inputs"]["target"]["wanted"]
    sentences = (*numbers["sentences"], *(stored["sentences"] if stored else ()))
    data = {"approximate": numbers, "plan": stored, "has_wanted_power": has_power}
    return Plan(sentences, tuple(numbers["advice"]), has_power, data)


def rehearse(code: str, key: str = "", timeout: float = JOB_SECONDS, **sent: int) -> Steps[dict[str, Any]]:
    """Rehearse a link with robots, by default the only link of the study, and return what was found. ``sent``: ``people``, ``seed``."""
    if not key:
        keys = [one.key for one in (yield from links(code))]
        if len(keys) != 1:
            raise WrongUse(
                f"The study has {len(keys)} links. Name the one to rehearse: {', '.join(keys) or 'make one'}."
            )
        key = keys[0]
    done = yield from _do_job(code, f"links/{key}/rehearse/", sent, timeout)
    return done["result"]


def invented_report(code: str, timeout: float = JOB_SECONDS, **sent: bool) -> Steps[dict[str, Any]]:
    """Let robots answer a copy of a draft, and return their report. ``sent``: ``are_systems_equal``."""
    done = yield from _do_job(code, "preview/", sent, timeout)
    return done["result"]["result"]


def settle(code: str, key: str, is_dry_run: bool = False) -> Steps[dict[str, Any]]:
    """Record what is due by a link, or only count it. It orders and pays nothing."""
    return (yield from ask("POST", f"studies/{code}/links/{key}/payments/settle/", {"is_dry_run": is_dry_run}))


def pay(code: str) -> Steps[dict[str, Any]]:
    """Return pay by hour, the cost of each link, and all ``payments``."""
    report = yield from ask("GET", f"studies/{code}/pay/")
    payments = yield from rows_of(f"studies/{code}/payments/")
    return {**report, "payments": payments}


def use_translation(code: str, file: str | Path | bytes) -> Steps[dict[str, Any]]:
    """Give a draft the words of a PO file, by its path or content, and return what its pages have now."""
    try:
        text = (file if isinstance(file, bytes) else read_file(file)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WrongUse("The file of words is not UTF-8 text. Save it as UTF-8.") from None
    return (yield from ask("PUT", f"studies/{code}/translation/", {"file": text}))


def translation_file(code: str) -> Steps[bytes]:
    """Return the PO file of the words of a study's pages, to translate it."""
    return (yield from send("GET", f"studies/{code}/translation/words.po")).content


def verdicts(code: str, claim: str | None = None) -> Steps[list[Verdict]]:
    """Return what the newest analysis decides about each planned comparison, or about one claim. Without an analysis, it is open."""
    found = yield from ask("GET", f"studies/{code}/verdict/", parameters={"claim": claim})
    if found["reason"]:
        return [Verdict(claim or "", "open", found["reason"], analysis=found["analysis"])]
    return [
        Verdict(
            one["claim"],
            one["verdict"],
            one["sentence"],
            one["numbers"],
            one["pvalue"],
            tuple(one["warnings"]),
            found["analysis"],
        )
        for one in found["claims"]
    ]


def claim(code: str, words: str) -> Steps[Verdict]:
    """Return the verdict about one claim, such as “new beats old”. Raise Refused if no planned comparison has it."""
    (verdict,) = yield from verdicts(code, words)
    return verdict


def export(code: str, name: str, target: Path | None = None, **parameters: Any) -> Steps[bytes]:
    """Return the file of an export, such as ``responses.csv``, ``scores.parquet``, ``payments.csv``, ``archive.zip`` or ``report.pdf``.

    ``parameters``: ``origins``, ``withdrawn`` and ``raw``; of a report its ``analysis`` (default: the newest).
    ``target``: where it is written while it arrives, instead of being returned.
    """
    if not re.fullmatch(r"[a-z_]+\.[A-Za-z0-9.]+", name):
        raise WrongUse(f"There is no export {name}. Use one such as responses.csv, items.jsonl or archive.zip.")
    if name == "report.pdf":
        return (yield from _report_pdf(code, parameters.get("analysis"), target))
    at = f"studies/{code}/{'' if name == 'payments.csv' else 'exports/'}{name}"
    try:
        return (yield from send("GET", at, parameters=parameters, target=target)).content
    except Refused as refused:
        if refused.status != 404:
            raise
    # What is not sent while it is read is written to a file by a job.
    table, _, form = name.partition(".")
    sent: dict[str, Any] = {"table": table, "format": form, "withdrawn": bool(parameters.get("withdrawn"))}
    if parameters.get("origins"):
        sent["origins"] = parameters["origins"].split(",")
    job = yield from _do_job(code, "exports/", sent)
    return (yield from send("GET", f"studies/{code}/jobs/{job['code']}/file/", target=target)).content


def _report_pdf(code: str, number: int | None, target: Path | None) -> Steps[bytes]:
    if number is None:
        newest = yield from ask("GET", f"studies/{code}/verdict/")
        if (number := newest["analysis"]) is None:
            raise WrongUse("The study has no analysis yet. Start one first.")
    at = f"analyses/{number}/report.pdf"
    yield from _do_job(code, at)
    return (yield from send("GET", f"studies/{code}/{at}", target=target)).content


def answers(code: str, **parameters: Any) -> Steps[list[dict[str, Any]]]:
    """Return one dict for each judgement, with the columns of the exports."""
    content = yield from export(code, "responses.jsonl", **parameters)
    *rows, end = [json.loads(line) for line in content.splitlines() if line.strip()] or [{}]
    if not end.get("_end"):
        raise NotReachable("The answers arrived only in part. Ask for them again.")
    return rows
