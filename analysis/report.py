"""``build_report``: frames, exclusions, protocols' analyses and tables across them, as one JSON value without NaN.

What is stored, shown, exported and drawn is this value; nothing computes a second time. The same database, parameters and code
give the same bytes.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db.models import Count

from annotators.models import Assignment
from studies.design import canonical, design_of, mismatch, sha256_of
from studies.models import Study
from studies.version import version

from . import choice_report, inconclusive, newest, sentences, tables
from .attrition import attrition
from .blocks import Block
from .claims import Claims, claims_of
from .coding.flat import codings_sha256
from .coding.report import Sample, read_samples
from .coding.report import blocks as coding_blocks
from .context import Context
from .exclusions.applied import Applied, apply_rules
from .exclusions.applied import kept as kept_by
from .exclusions.flow import flow_of
from .flat import Selection
from .frames import assignments_frame, checked_origins, data_sha256, responses_frame
from .material import material_of
from .protocols import REGISTRY
from .snapshot import snapshot

if TYPE_CHECKING:
    from pandas import DataFrame

logger = logging.getLogger("heval.report")

SCHEMA = "heval.report/1"
NO_PLAN = "No comparison was planned."
DEFAULTS: dict[str, Any] = {"origins": ["live"], "level": 0.95, "resamples": 9999, "star_scheme": "10/5/1"}
STAR_SCHEMES = ("10/5/1", "5/1/0.1")
LIBRARIES = ("numpy", "scipy", "pandas")
Progress = Callable[[int, int, str], Any]


class BadParameters(ValueError):
    """A parameter of the report is none that it knows; the message names it."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the snapshot gave."""

    study: Study
    responses: "DataFrame"
    assignments: "DataFrame"
    applied: list[Applied]
    sections: list[Any]
    versions: list[dict[str, Any]]
    mismatch: str
    design_now: str
    data_sha256: str
    samples: list[Sample]
    sources: list[dict[str, Any]]
    codings: tuple[str, int]
    retired: frozenset[str]
    problems: list[dict[str, Any]]
    n_problems: int
    n_withdrawn: int
    claims: Claims | None = None


def default_origins(study: Study) -> list[str]:
    """Whose answers a report is about when nobody says: the people of the study; where all were imported, those."""
    found = Assignment.objects.filter(study=study, withdrawn_at=None)
    is_imported = found.filter(origin="imported").exists() and not found.filter(origin="live").exists()
    return ["imported"] if is_imported else list(DEFAULTS["origins"])


def sources_of(study: Study) -> list[dict[str, Any]]:
    """The files from which answers were imported, each with its hash and the number of assignments that it brought."""
    rows = (
        Assignment.objects.filter(study=study, origin="imported", withdrawn_at=None).order_by("source")
        .values_list("source__code", "source__arguments", "source__result", "source__created_at").annotate(n=Count("pk"))
    )  # fmt: skip
    return [
        {
            "job": str(code), "filename": (arguments or {}).get("filename", ""), "at": at.isoformat() if at else "", "assignments": n,
            "sha256": (arguments or {}).get("sha256") or (result or {}).get("sha256") or "",
        }
        for code, arguments, result, at, n in rows
    ]  # fmt: skip


def checked_parameters(parameters: Mapping[str, Any] | None, study: Study | None = None) -> dict[str, Any]:
    """The parameters with every default filled in, the study's own where it has one. Raises BadParameters, naming what is wrong."""
    given = dict(parameters or {})
    if unknown := sorted(set(given) - set(DEFAULTS)):
        raise BadParameters(f"{unknown[0]}: a report has no such parameter; it has {', '.join(DEFAULTS)}.")
    made = DEFAULTS | given
    if not isinstance(made["origins"], list | tuple) or not all(isinstance(one, str) for one in made["origins"]):
        raise BadParameters("origins: must be a list of their names.")
    try:
        made["origins"] = checked_origins(made["origins"])
    except ValueError as error:
        raise BadParameters(str(error)) from None
    if not made["origins"]:
        raise BadParameters("origins: name at least one.")
    level, resamples = made["level"], made["resamples"]
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level < 1:
        raise BadParameters(f"level: {level!r} is no confidence level from 0.5 to below 1.")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 99 <= resamples <= 99_999:
        raise BadParameters(f"resamples: {resamples!r} is no whole number from 99 to 99999.")
    if made["star_scheme"] not in STAR_SCHEMES:
        raise BadParameters(f"star_scheme: {made['star_scheme']!r} is none of {', '.join(STAR_SCHEMES)}.")
    if study is not None and "origins" not in given:
        made["origins"] = default_origins(study)
    return made


def build_report(
    study: Study, parameters: Mapping[str, Any] | None = None, progress: Progress = lambda done, total, doing: None
) -> dict[str, Any]:
    """The report of a study as plain JSON: what was read, who was left out, every estimate, the tables and the sentences.

    While a study collects and is not unblinded, there is quality and progress only. Raises BadParameters.
    """
    from analysis.stats.results import plain
    from analysis.stats.seeds import generator, seed_hex

    made = checked_parameters(parameters, study)
    progress(0, 5, "Reading the answers")
    with snapshot():
        read = _read(study, made["origins"])
    study = read.study
    progress(1, 5, "Applying the exclusion rules")
    flow = flow_of(read.applied, read.assignments)
    flow["origins"] = dict(sorted(Counter(read.assignments["origin"]).items()))
    rules = [[rule.slug, dict(rule.settings), rule.role] for rule in read.applied]
    seed = seed_hex(str(study.code), "report", made, read.data_sha256, rules, read.design_now)
    hidden = _hidden(study, made["origins"])
    problems = list(read.problems)
    problems += [{"row": f"rule {r.slug}", "column": "settings", "text": r.problem} for r in read.applied if r.problem]
    blocks: list[dict[str, Any]] = []
    if not hidden:
        blocks = _analyses(read, made, seed, problems, progress)
        if alone := _of_newest(read):
            blocks += newest.blocks(blocks, _analyses(alone, made, seed, problems, progress))
        settings = {"level": made["level"], "resamples": made["resamples"], "rng": generator(seed, "attrition")}
        if lost := attrition(read.assignments, read.applied, **settings):
            blocks.append(block_as_dict(lost))
        blocks += [
            block_as_dict(block)
            for block in coding_blocks(read.samples, level=made["level"], resamples=made["resamples"], seed=seed)
        ]
    progress(3, 5, "Making tables")
    kept = kept_by(read.applied, _submitted(read))
    tests = (e["test"] for b in blocks for e in b["estimates"] if e["test"] and e["test"]["family"])
    families = sorted({(test["family"], test["family_size"], test["adjust"]) for test in tests})
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "study": {"code": str(study.code), "title": study.title, "state": study.state},
        "parameters": made,
        "seed": seed,
        "code_version": code_version(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "data": {
            "responses_n": len(read.responses), "sha256": read.data_sha256, "n_withdrawn": read.n_withdrawn, "sources": read.sources,
            "codings_n": read.codings[1], "codings_sha256": read.codings[0] if read.codings[1] else "",
        },
        "design": {"versions": read.versions, "mismatch": read.mismatch, "now_sha256": read.design_now},
        "outcomes": {"is_hidden": bool(hidden), "reason": hidden},
        "confirmatory": _confirmatory(read, made),
        "n": {"arrived": flow["arrived"], "submitted": flow["submitted"], "kept": len(kept), "kept_paper": flow["kept"]},
        "flow": flow,
        "sections": [
            {"position": s.position, "protocol": s.protocol, "purpose": s.purpose, "m": s.m, "questions": s.questions.count()}
            for s in read.sections
        ],
        "families": [{"family": name, "size": size, "adjust": method} for name, size, method in families],
        "notices": _notices(read, made, blocks),
        "blocks": blocks,
        "problems": problems,
        "n_problems": read.n_problems + len(problems) - len(read.problems),
    }  # fmt: skip
    result["conclusions"] = sentences.conclusions(blocks) + choice_report.conclusions(blocks)
    result["no_conclusion"] = ""
    if not hidden and not result["conclusions"]:
        contrasts = list(study.contrasts.select_related("x", "y").order_by("pk"))
        result["no_conclusion"] = inconclusive.why(contrasts, flow["submitted"], len(kept), _marked(read), problems)
    result["tables"] = _tables(result, read)
    by_name = {one["name"]: one for one in result["tables"]}
    result["summary"] = sentences.summary(blocks, by_name.get("ways_of_counting"))
    result["methods"] = sentences.methods(result)
    result["figures"] = figures(blocks, made)
    progress(4, 5, "Writing")
    return plain(result)


def _read(study: Study, origins: list[str]) -> Read:
    """All that a report rests on, from one moment of the database."""
    study = Study.objects.get(pk=study.pk)
    read, seats = responses_frame(study, origins), assignments_frame(study, origins)
    responses, assignments = read.rows, seats.rows
    sections = list(study.sections.order_by("position"))
    reads_claims = any(section.protocol in REGISTRY and REGISTRY[section.protocol].reads_claims for section in sections)
    counts = Counter(version for version in assignments["design_version"].tolist() if version == version)
    versions = [
        {
            "version": design.version, "sha256": design.sha256, "at": design.at.isoformat(), "reason": design.reason,
            "assignments": counts.get(design.version, 0),
        }
        for design in study.designs.order_by("version")
    ]  # fmt: skip
    return Read(
        study, responses, assignments, apply_rules(study, material_of(study, responses, assignments)), sections,
        versions, mismatch(study), sha256_of(canonical(design_of(study))), data_sha256(responses), read_samples(study, origins),
        sources_of(study) if Assignment.Origin.IMPORTED in origins else [], codings_sha256(Selection(study, tuple(origins))),
        _retired(study), [*read.problems, *seats.problems], read.n_problems + seats.n_problems, seats.n_withdrawn,
        claims_of(study, origins) if reads_claims else None,
    )  # fmt: skip


def _retired(study: Study) -> frozenset[str]:
    """The items that amendments took out, as frames name them."""
    rows = study.items.filter(retired_in__isnull=False).values_list("section__position", "number")
    return frozenset(f"s{section}.{number}" for section, number in rows)


def _submitted(read: Read) -> list[int]:
    return read.assignments.loc[read.assignments["is_submitted"], "assignment"].tolist()


def _hidden(study: Study, origins: list[str]) -> str:
    """Why outcomes are not shown; '' where they are. Robots' answers hide nothing."""
    if study.is_blind and {"live", "imported"} & set(origins):
        return (
            "The study is still collecting. Until it is closed, or unblinded by its owner (which is recorded), reports show quality and "
            "progress only: looking at outcomes while people still come makes p-values wrong."
        )
    return ""


def _confirmatory(read: Read, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the tests may be called confirmatory, with every reason against it."""
    study, reasons = read.study, []
    if not read.versions:
        reasons.append("The design was not frozen: the study was not launched.")
    if read.mismatch:
        reasons.append(read.mismatch)
    if study.unblinded_at and (study.closing_at is None or study.unblinded_at < study.closing_at):
        reasons.append("The study was unblinded while it collected.")
    if study.state in Study.COLLECTING:
        reasons.append("The study still collects.")
    if "imported" in parameters["origins"]:
        reasons.append("Answers that were given elsewhere are in it: the design was frozen after they were given.")
    if others := [origin for origin in parameters["origins"] if origin not in ("live", "imported")]:
        words = {"robot": "of robots", "test": "of tries"}
        reasons.append(f"Answers {' and '.join(words[origin] for origin in others)} are in it.")
    if not study.contrasts.exists():
        reasons.append(NO_PLAN)
    return {"is_confirmatory": not reasons, "reasons": reasons}


def _analyses(
    read: Read, parameters: Mapping[str, Any], seed: str, problems: list[dict[str, Any]], progress: Progress
) -> list[dict[str, Any]]:
    """The blocks of every protocol's live sections."""
    rows = _marked(read)
    tau = next((rule for rule in read.applied if rule.slug == "incoherent" and not rule.problem), None)
    how = {name: parameters[name] for name in ("level", "resamples", "star_scheme")}
    live: dict[str, list[Any]] = {}
    for section in read.sections:
        if section.purpose == "live":
            live.setdefault(section.protocol, []).append(section)
    blocks = []
    for place, (slug, sections) in enumerate(live.items(), 1):
        progress(2, 5, f"Analysing {slug} ({place} of {len(live)})")
        analysis = REGISTRY.get(slug)
        if analysis is None:
            problems.append(
                {"row": f"protocol {slug}", "column": "", "text": "not installed; its sections are not analysed"}
            )
            continue
        context = Context(
            protocol=slug,
            rows=rows[rows["protocol"] == slug],
            sections=sections,
            seed=seed,
            tau=float(tau.settings.get("tau", 1.1)) if tau else 1.1,
            is_after_tau=bool(tau and tau.excludes and tau.failed),
            claims=read.claims,
            **how,
        )
        try:
            blocks += [block_as_dict(block) for block in analysis.analyse(context)]
        except Exception as error:
            # One protocol's fault must not take the others' results away; the words are in the log, the fact in the report.
            logger.exception("The analysis of %s failed", slug)
            problems.append(
                {"row": f"protocol {slug}", "column": "", "text": f"its analysis failed ({type(error).__name__})"}
            )
    return blocks


def _of_newest(read: Read) -> Read | None:
    """What the newest version of an amended design brought; None where all that was submitted is of one version."""
    assignments = read.assignments
    if not newest.is_amended(assignments.loc[assignments["is_submitted"], "design_version"]):
        return None
    theirs = assignments[assignments["design_version"] == read.versions[-1]["version"]]
    those = theirs["assignment"]
    claims = read.claims and replace(read.claims, rows=read.claims.rows[read.claims.rows["assignment"].isin(those)])
    return replace(
        read, responses=read.responses[read.responses["assignment"].isin(those)], assignments=theirs, claims=claims
    )


def _marked(read: Read) -> "DataFrame":
    """Live answers of those who submitted, with who is kept by what."""
    submitted = _submitted(read)
    rows = read.responses
    rows = rows[(rows["purpose"] == "live") & (rows["kind"].isna() | (rows["kind"] == "live"))]
    rows = rows[rows["assignment"].isin(submitted)].copy()
    rows["is_kept"] = rows["assignment"].isin(kept_by(read.applied, submitted))
    rows["is_kept_paper"] = rows["assignment"].isin(kept_by(read.applied, submitted, is_paper=True))
    for rule in read.applied:
        rows[f"kept:{rule.slug}"] = ~rows["assignment"].isin(rule.failed)
    return rows


def block_as_dict(block: Block) -> dict[str, Any]:
    """A block as plain JSON."""
    from analysis.stats.results import plain

    return plain(
        {
            "name": block.name, "title": block.title, "mode": block.mode, "note": block.note,
            "estimates": [_envelope(estimate, block.mode) for estimate in block.estimates],
            "tables": list(block.tables), "series": list(block.series), "verdict": block.verdict, "warnings": list(block.warnings),
        }
    )  # fmt: skip


def _envelope(estimate: Any, mode: str) -> dict[str, Any]:
    return estimate.as_dict() | {"mode": mode}


def _notices(read: Read, parameters: Mapping[str, Any], blocks: list[dict[str, Any]]) -> list[dict[str, str]]:
    """What a reader must know before the numbers."""
    study, assignments = read.study, read.assignments
    submitted = assignments[assignments["is_submitted"]]
    found: list[dict[str, str]] = []

    def say(code: str, text: str, severity: str = "warn") -> None:
        found.append({"code": code, "severity": severity, "text": text})

    for rule in read.applied:
        n = len(rule.failed & set(_submitted(read)))
        if rule.excludes and 2 * n > len(submitted):
            say(
                "rule_excludes_most",
                f"The exclusion rule “{rule.label.partition(':')[0]}” excludes {n} of {len(submitted)} annotators who submitted. Before you use these "
                "results, look at the rule's settings, and at its evidence in the table “Assignments left out”.",
                "block",
            )
    if any(origin != "live" for origin in parameters["origins"]):
        words = {"live": "people", "robot": "robots", "imported": "people of an imported study", "test": "tries"}
        whose = " and ".join(words[origin] for origin in parameters["origins"])
        say("origins", f"The answers are those of {whose}{'' if len(parameters['origins']) > 1 else ' alone'}.")
    if len(read.versions) > 1:
        shares = "; ".join(f"version {v['version']}: {v['assignments']} assignments" for v in read.versions)
        is_beside = any(block["name"] == newest.NAME for block in blocks)
        beside = " The planned comparisons without the earlier versions stand below." if is_beside else ""
        say("amended", f"The design was amended ({shares}).{beside}")
    if read.retired:
        about = read.responses[read.responses["item"].isin(read.retired) & read.responses["is_submitted"]]
        n = len(read.retired)
        say(
            "retired",
            f"{n} item{'s were' if n > 1 else ' was'} retired by an amendment. What had been answered about {'them' if n > 1 else 'it'} before, "
            f"or by those who had begun, counts: {about['assignment'].nunique()} submitted assignments hold such answers.",
        )
    unknown = int((~submitted["is_identified"]).sum())
    if unknown:
        say(
            "identity",
            f"{unknown} of {len(submitted)} submitted assignments came by an open link: that they are different people is unverified.",
        )
    if n := read.n_withdrawn:
        say(
            "withdrawn",
            f"{n} assignment{'s were' if n > 1 else ' was'} withdrawn by the annotator and left out.",
            "info",
        )
    unseen = submitted[submitted["unseen_pages"] > 0]
    if len(unseen):
        n, who = int(unseen["unseen_pages"].sum()), len(unseen)
        say(
            "unseen",
            f"{n} page{'s were' if n > 1 else ' was'} answered without seeing an image: {who} submitted assignment{'s' if who > 1 else ''} "
            f"{'say' if who > 1 else 'says'} so. These answers count. The column “unseen” of the exports names the images.",
        )
    kept = len(kept_by(read.applied, _submitted(read)))
    n = kept if study.target_kind == "kept" else len(submitted)
    if study.audit_events.filter(verb="decide").exists():
        say(
            "stopped",
            f"The study closed itself by its stopping rule; {n} annotators had come, its budget was {study.target_n}.",
            "info",
        )
    elif study.target_n and n < study.target_n and "live" in parameters["origins"]:
        say(
            "below_target",
            f"{n} of the {study.target_n} annotators that the study aims at are there: intervals are wider than planned.",
        )
    if len(submitted) and not kept:
        say(
            "all_excluded",
            "The exclusion rules left nobody, so nothing can be estimated. “Who is in it” below says how many each rule found.",
            "block",
        )
    for rule in read.applied:
        if rule.role == "primary" and not rule.is_outcome_blind:
            say("outcome_rule", f"The rule “{rule.label}” looks at outcomes. It is applied to the paper's estimates; the recommended ones are made "
                "without it and show what it would do.")  # fmt: skip
    codes = {w["code"] for b in blocks for e in b["estimates"] for o in [e, *e["sensitivity"]] for w in o["warnings"]}
    if "tau_one_order_bias" in codes:
        say("tau_one_order_bias", "The paper's estimates were made after leaving out by tau, from one order of naming: they are biased downwards "
            "even where nobody prefers anything. No claim may rest on them.", "block")  # fmt: skip
    if "order_not_identified" in codes:
        say(
            "order",
            "Some pairs were asked in one direction only: being named first and being better cannot be told apart there.",
        )
    if read.mismatch:
        say("mismatch", read.mismatch, "block")
    return found


def _tables(result: Mapping[str, Any], read: Read) -> list[tables.Table]:
    blocks, flow = result["blocks"], result["flow"]
    every_method = tables.methods(blocks)
    made: list[tables.Table | None] = [
        *tables.table_1(blocks, result["parameters"]["star_scheme"]),
        *tables.of_blocks(blocks),
        tables.agreement(every_method),
        tables.likert(blocks),
        *choice_report.tables(blocks),
        tables.rules(flow),
        tables.overlaps(flow),
        tables.by_arm(flow),
        tables.attrition(blocks),
        tables.people(flow),
        tables.before_after(blocks),
        tables.gap(blocks),
        tables.coherence(blocks),
        *tables.ranking(blocks),
        tables.reliability(blocks),
        newest.newest_table(blocks),
        tables.exposure_levels(blocks),
        tables.simple(blocks, "spa.exposures", "exposures", "What more exposure changes", "sure"),
        every_method,
        tables.means(blocks),
        tables.simple(
            blocks,
            "spa.tau",
            "tau",
            "Whether leaving out by tau would move the estimate (correlation of gap and preference)",
        ),
        _missing(read),
        _times(read),
        tables.warnings(blocks),
        tables.everything(blocks) if blocks else None,
    ]
    return [tables.at_level(one, result["parameters"]["level"]) for one in made if one is not None]


def _missing(read: Read) -> tables.Table | None:
    """Answers by section and question: given, skipped, erased, unreadable."""
    rows = read.responses[read.responses["assignment"].isin(_submitted(read))]
    found = []
    for (section, question), mine in rows.groupby(["section", "question"], sort=True):
        is_given = mine["value"].notna() | (mine["choice"] != "") | mine["chosen_system"].notna() | (mine["text"] != "")
        found.append(
            {
                "section": int(section), "question": question, "assignments": int(mine["assignment"].nunique()), "rows": len(mine),
                "given": int(is_given.sum()), "skipped": int((mine["skip_reason"] != "").sum()), "erased": int(mine["is_erased"].sum()),
            }
        )  # fmt: skip
    columns = (
        "section|Section|integer; question|Question|text; assignments|n assignments|integer; rows|Answers stored|integer; given|Given|integer; "
        "skipped|Skipped|integer; erased|Erased|integer"
    )
    return tables.table("answers", "Answers by question", columns, found, "more") if found else None


def _times(read: Read) -> tables.Table | None:
    """How long it took, by arm: quartiles of minutes from start to submission."""
    rows = read.assignments[read.assignments["is_submitted"] & read.assignments["seconds"].notna()]
    found = []
    for arm, mine in rows.groupby("arm", sort=True):
        low, middle, high = (float(mine["seconds"].quantile(q)) / 60 for q in (0.25, 0.5, 0.75))
        found.append({"arm": arm, "n": len(mine), "median": middle, "quartiles": [low, high]})
    columns = "arm|Arm|text; n|n assignments|integer; median|Median, minutes|number; quartiles|Quartiles, minutes|wide_interval"
    return tables.table("times", "Minutes from start to submission", columns, found, "more") if found else None


def figures(blocks: list[dict[str, Any]], parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is drawn: each figure as the rows of numbers that stand under it."""
    percent = f"{100 * parameters['level']:g} %"
    made = []

    def add(name, title, description, axis, reference, rows, limits=None):
        rows = [row for row in rows if row["estimate"] is not None]
        if rows:
            made.append({"name": name, "title": title, "description": description, "axis": axis, "reference": reference,
                         "limits": limits, "rows": rows})  # fmt: skip

    def points(estimates, series, label=lambda e: tables.label_of(tables.contrast_of(e), several)):
        return [
            {"label": label(e), "series": series, "estimate": e["estimate"], "n": e["n"], "unit": e["unit"],
             "low": (e["interval"] or {}).get("low"), "high": (e["interval"] or {}).get("high")}
            for e in estimates
        ]  # fmt: skip

    spa = tables.estimates_of(blocks, "spa.pairs")
    several = len({tables.contrast_of(e)["section"] for e in spa}) > 1
    order = {tables.label_of(tables.contrast_of(e), several): n for n, e in enumerate(spa)}
    rows = points(spa, "both orders (recommended)") + points(
        tables.estimates_of(blocks, "spa.pairs", "paper"), "one order (paper)"
    )
    add("forest", "Stated chance that x is better than y", f"Points are means over annotators, lines {percent} confidence intervals; 50 % is no preference.",
        "P[x > y]", 0.5, sorted(rows, key=lambda r: order[r["label"]]), [0, 1])  # fmt: skip
    levels = tables.estimates_of(blocks, "spa.exposure_levels")
    add("exposure", "The stated chance by what was seen", f"Mean P[x > y] after m exposures, both orders combined, with {percent} confidence intervals; the same "
        "annotators answered at each m.", "P[x > y]", 0.5, points(levels, "both orders", tables.exposure_label), [0, 1])  # fmt: skip
    several = (
        len(
            {
                tables.contrast_of(e)["key"].partition(", section")[2]
                for e in tables.estimates_of(blocks, "rating.superiority")
            }
        )
        > 1
    )
    add("ratings", "Chance of being rated higher", f"Probability that an annotator rates x above y, ties half, with {percent} bootstrap intervals.",
        "P(x rated above y)", 0.5, points(tables.estimates_of(blocks, "rating.superiority"), "probability of superiority"), [0, 1])  # fmt: skip
    several = len({tables.contrast_of(e)["section"] for e in spa}) > 1
    add("gap", "Gap between the two orders of naming", f"Mean of p_xy + p_yx - 1 with {percent} confidence intervals; 0 is no effect of naming order.",
        "p_xy + p_yx − 1", 0.0, points(tables.estimates_of(blocks, "spa.order"), "gap"))  # fmt: skip
    changes = [e for e in tables.estimates_of(blocks, "spa.before_after") if e["status"] == "ok"]
    if len(changes) <= 60:
        add("rules", "What each exclusion rule changes", f"Mean after the rule less mean before it, with {percent} nested bootstrap intervals.",
            "Change of P[x > y]", 0.0,
            [point | {"series": e["settings"]["rule"], "label": f"{point['label']}: {e['settings']['rule']}"}
             for e, point in zip(changes, points(changes, ""), strict=True)])  # fmt: skip
    add("choices", "Share of choices for x", f"Points are shares, lines {percent} intervals (a confidence sequence under a stopping rule); 50 % is no preference.",
        "P(x chosen)", 0.5, sorted(choice_report.points(blocks), key=lambda row: row["label"]), [0, 1])  # fmt: skip
    rated = tables.estimates_of(blocks, "rating.means")
    sections = {e["settings"]["section"] for e in rated}

    def who(e):
        where = f", section {e['settings']['section']}" if len(sections) > 1 else ""
        return f"{e['settings']['system']} ({e['settings']['question']}{where})"

    add("means", "Mean rating of each system", f"On the scale on which answers are scored, every annotator weighing the same, with {percent} confidence intervals.",
        "Mean rating", None, points(rated, "mean", who))  # fmt: skip
    for block in blocks:
        for one in block["series"]:
            add(
                one["name"], one["title"], one["description"], one["axis"], one["reference"], one["rows"], one["limits"]
            )
            if made and made[-1]["name"] == one["name"]:
                made[-1]["kind"] = one.get("kind", "intervals")
    return made


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version and a hash of the code that reports come from: another line of it is another version."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for package in ("studies", "annotators", "analysis"):
        for path in sorted((root / package).rglob("*.py")):
            if "migrations" not in path.parts:
                digest.update(f"{path.relative_to(root).as_posix()}\x00".encode() + path.read_bytes())
    return f"{version()}+src.{digest.hexdigest()[:12]}"
