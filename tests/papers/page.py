"""The page "What the four papers print", from the kept numbers."""

from textwrap import fill
from typing import Any

from tests.papers.numbers import PARTS, kept, part_name
from tests.papers.rows import ROOT

PAGE = ROOT / "templates" / "docs" / "explanation" / "the-papers-numbers.md"

BEGINNING = """# What the four papers print

heval implements methods of four papers. This page sets what they print beside what heval computes from the same data,
the same description or the printed numbers themselves, so that you see what was reproduced, what was not, and why.

*Published* is what the paper prints, empty where it prints no such number and ours is there to explain. *How* names the
function of `analysis.stats`, or says that it is arithmetic. *Agrees* means that ours rounds to the printed number; for
simulations, that the two differ by no more than chance does in 99 of 100 repetitions; for a row of a table, a star or a
limit, that it can be what it is said to be. Letters lead to the notes below each table.

"""
PAPERS = {
    "spa": (
        "System-level probabilistic assessment",
        "Ethayarajh and Jurafsky 2022, *The Authenticity Gap in Human Evaluation*. The answers were not "
        "published: the rows below follow from the means and stars of its Table 1, and from its rules.",
        "The image study (Figures 1 and 5) prints curves without numbers; which 100 of the 150 batches were judged is "
        "not known.",
    ),
    "dynamic": (
        "Dynamic human evaluation",
        "Thorleiksdottir et al. 2021, *Dynamic Human Evaluation for Relative Model Comparisons*. Two of its three "
        "sets of real labels were used; "
        "its simulation was run as described.",
        "The third set of labels, V2 vs CGA (R2), was not at hand: its kappa, its third of Table 6 and its row of Table 7"
        " are missing here. "
        "Table 5 comes from an automatic classifier.",
    ),
    "genie": (
        "Test questions",
        "Khashabi et al. 2022, *GENIE*. Its worker model was published as code, its workers' answers were not.",
        "The scores of the leaderboards (Tables 3 and 6) need labels that were not published.",
    ),
    "not_gold": (
        "Human or machine",
        "Clark et al. 2021, *All That's 'Human' Is Not Gold*. The answers were not published; the printed "
        "columns restrict one another.",
        "Krippendorff's alpha, the coding of comments (Table 3) and the histograms of the appendix need the answers.",
    ),
}
ENDING = """## Numbers of this page

{counts}

This page is written by the code: `python -m tests.papers --write` computes all of it anew, with fixed seeds, and a test
fails when the page does not say what was computed.
"""
SAID = {True: "yes", False: "**no**", None: "–"}


def by_paper(parts: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    return {
        paper: [row for part in PARTS if part.paper == paper for row in parts.get(part_name(part), [])]
        for paper in PAPERS
    }


def letter(place: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[place]


def filled(words: str, indent: str = "") -> str:
    return fill(words, width=120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def table(rows: list[dict[str, Any]]) -> str:
    """A table with its notes; a note that several rows share stands once."""
    notes = list(dict.fromkeys(row["note"] for row in rows if row["note"]))
    found = ["| | what | published | ours | how | agrees |", "|---|---|--:|--:|---|---|"]
    place = ""
    for row in rows:
        mark = f" ({letter(notes.index(row['note']))})" if row["note"] else ""
        how = ", ".join(f"`{name}`" if "." in name else name for name in row["how"].split(", "))
        shown = row["place"] if row["place"] != place else ""
        # Stars are stars here, not the beginning of bold words.
        published = row["published"].replace("*", "\\*")
        found.append(f"| {shown} | {row['what']} | {published} | {row['ours']} | {how} | {SAID[row['agrees']]}{mark} |")
        place = row["place"]
    said = [filled(f"- ({letter(place)}) {note}", "  ") for place, note in enumerate(notes)]
    return "\n".join(found) + "\n\n" + "\n".join(said) + "\n"


def counts(parts: dict[str, list[dict[str, Any]]]) -> str:
    found = ["| | agree | do not | not printed |", "|---|--:|--:|--:|"]
    groups = by_paper(parts)
    for title, rows in (
        *((PAPERS[paper][0], rows) for paper, rows in groups.items()),
        ("all", sum(groups.values(), [])),
    ):
        numbers = [sum(row["agrees"] is answer for row in rows) for answer in (True, False, None)]
        found.append(f"| {title} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(found)


def text() -> str:
    parts = kept()
    found = BEGINNING
    for paper, rows in by_paper(parts).items():
        title, source, missing = PAPERS[paper]
        found += f"## {title}\n\n{filled(source)}\n\n{table(rows)}\n{filled('*Not computed again.* ' + missing)}\n\n"
    return found + ENDING.format(counts=counts(parts))


def lines(parts: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The same for a terminal: what | published | ours | how | agrees?"""
    found = []
    for paper, rows in by_paper(parts).items():
        found += ["", PAPERS[paper][0], "what | published | ours | how | agrees?"]
        for row in rows:
            said = SAID[row["agrees"]].strip("*")
            found.append(
                f"{row['place']}: {row['what']} | {row['published'] or '–'} | {row['ours']} | {row['how']} | {said}"
            )
    return found


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")
