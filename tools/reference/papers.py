"""The pages of what the four papers do, one line each with its page, REST resource, test and state, from papers.csv."""

import csv
from dataclasses import dataclass
from pathlib import Path

from .markdown import as_sentence, build_page, inline_code, markdown_table

# What nobody can have from the paper is closed, with its reason.
WORKS, PARTLY, NOT, CANNOT = "works", "partly", "not", "cannot be had"
STATES = (WORKS, PARTLY, NOT, CANNOT)
# The beginning of a line's id > the paper and its number of lines. A line keeps its id, so none is ever removed.
PAPERS = {
    "spa": ("Ethayarajh and Jurafsky 2022, *The Authenticity Gap in Human Evaluation*", 40),
    "genie": ("Khashabi et al. 2022, *Genie*", 40),
    "notgold": ("Clark et al. 2021, *All That's ‘Human’ Is Not Gold*", 41),
    "dynamic": ("Thorleiksdóttir et al. 2022, *Dynamic Human Evaluation for Relative Model Comparisons*", 34),
}


@dataclass(frozen=True, slots=True)
class PaperLine:
    """Something that a paper does. ``how``: the page of the documentation for it. ``missing``: what heval lacks, or why it cannot be had."""

    id: str
    place: str
    does: str
    how: str
    page: str
    rest: str
    test: str
    state: str
    missing: str

    @property
    def paper(self) -> str:
        return self.id.partition("-")[0]


def read_paper_lines() -> list[PaperLine]:
    with Path(__file__).with_name("papers.csv").open(encoding="utf-8", newline="") as file:
        return [PaperLine(**row) for row in csv.DictReader(file, strict=True)]


def paper_page(paper: str) -> str:
    title, _ = PAPERS[paper]
    lines = [line for line in read_paper_lines() if line.paper == paper]
    counts = {state: sum(line.state == state for line in lines) for state in STATES}
    states = [
        (
            line.id,
            line.place,
            f"{line.does} [How](../{line.how}.md)",
            ": ".join(filter(None, (line.state, line.missing))),
        )
        for line in lines
    ]
    names = [(line.id, *map(inline_code, (line.page, line.rest, line.test))) for line in lines]
    return build_page(
        f"What {title.partition(',')[0]} do, line by line",
        as_sentence(title),
        f"heval does {counts[WORKS]} of {len(lines)} lines, {counts[PARTLY]} partly, and {counts[NOT]} not; {counts[CANNOT]} cannot be had. "
        "[What the four papers print](../explanation/the-papers-numbers.md) compares numbers.",
        markdown_table(("Id", "Paper", "What the paper does", "State"), states),
        "## Page, REST resource and test of each line",
        "The page is the address at which one does or sees it, and the resource below `/api/v1/` has the same data.",
        markdown_table(("Id", "Page", "REST", "Test"), names),
    )
