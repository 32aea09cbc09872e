"""The printed columns of a row are compared with all counts that they allow."""

from statistics import fmean

import numpy as np

from analysis.stats import signal_detection
from tools.proofs.papers.not_gold.tables import DOMAINS, N_ANSWERS, OVERALL, TABLES, around
from tools.proofs.papers.rows import Row, decimals, rounds_to

NOTE_ROW = (
    "Rows are searched for whole numbers of machine texts and of hits that give every printed column. Where there"
    " are some, the share of machine texts is said; it need not be one half, so accuracy and precision must not "
    "be turned into one another by assuming that it is."
)
NOTE_NEWS = (
    "With this precision, recall and share of human guesses the accuracy would be .52 or .53. A difference of "
    ".019 that the text gives bears the accuracy out, so the precision is the likelier misprint."
)


def solutions(row: tuple[float, ...]) -> list[tuple[int, int]]:
    """The (machine texts, hits) of 650 answers that give every printed column."""
    accuracy, f1, precision, recall, human, _ = row
    says_machine = N_ANSWERS - round(human * N_ANSWERS / 100)
    machine, hits = np.meshgrid(np.arange(1, N_ANSWERS), np.arange(says_machine + 1), indexing="ij")
    right = N_ANSWERS - machine - says_machine + 2 * hits
    fits = (hits <= machine) & (machine - hits <= N_ANSWERS - says_machine)
    for ours, printed in (
        (right / N_ANSWERS, accuracy),
        (2 * hits / (machine + says_machine), f1),
        (hits / says_machine, precision),
        (hits / machine, recall),
    ):
        fits &= np.abs(ours - printed) <= 0.005 + 1e-9
    return [(int(m), int(h)) for m, h in zip(machine[fits], hits[fits], strict=True)]


def confirmed(row: tuple[float, ...], machine: int, hits: int) -> bool:
    """Whether heval's own measures of that table of counts print the row."""
    accuracy, f1, precision, recall, human, confident = row
    says_machine = N_ANSWERS - round(human * N_ANSWERS / 100)
    counts = (hits, says_machine - hits, machine - hits, N_ANSWERS - machine - says_machine + hits)
    ours = signal_detection.measures_from_counts(*counts, n_confident=round(confident * N_ANSWERS / 100))
    return all(
        rounds_to(value, printed, digits)
        for value, printed, digits in (
            (ours.accuracy, accuracy, 2),
            (ours.f1, f1, 2),
            (ours.precision, precision, 2),
            (ours.recall, recall, 2),
            (100 * ours.share_human, human, 2),
            (100 * ours.share_confident, confident, 2),
        )
    )


def identities() -> list[Row]:
    found = []
    cells = [
        (place, group, domain, row)
        for (place, group), rows in TABLES.items()
        for domain, row in zip(DOMAINS, rows, strict=True)
    ]
    for place, group, domain, row in cells:
        fits = [fit for fit in solutions(row) if confirmed(row, *fit)]
        shares = zip(("acc.", "F1", "P", "R"), row[:4], strict=True)
        printed = ", ".join(f"{name} {decimals(share, 2)}" for name, share in shares) + f", {row[4]:.2f} % human"
        shares = [machine / N_ANSWERS for machine, _ in fits]
        ours = (
            f"{len(fits)} tables of counts; machine texts {decimals(min(shares))} to {decimals(max(shares))}"
            if fits
            else "no table of counts"
        )
        found.append(
            Row(
                place,
                f"{group}, {domain}",
                printed,
                ours,
                "signal_detection.measures_from_counts",
                bool(fits),
                NOTE_ROW if fits else NOTE_NEWS,
                (len(fits), *((min(shares), max(shares)) if fits else ())),
            )
        )
    for what, right in (
        (
            "F1 from precision and recall, rows that fit",
            [
                any(rounds_to(2 * p * r / (p + r), row[1], 2) for p in around(row[2]) for r in around(row[3]))
                for *_, row in cells
            ],
        ),
        (
            "% human as a count of 650, rows that fit",
            [rounds_to(100 * round(6.5 * row[4]) / N_ANSWERS, row[4], 2) for *_, row in cells],
        ),
        (
            "% confident as a count of 650, rows that fit",
            [rounds_to(100 * round(6.5 * row[5]) / N_ANSWERS, row[5], 2) for *_, row in cells],
        ),
    ):
        found.append(Row("Tables 1, 2", what, "15", f"{sum(right)}", "arithmetic", all(right), "", (sum(right),)))
    for (place, group), rows in TABLES.items():
        mean = fmean(row[0] for row in rows)
        found.append(
            Row(
                place,
                f"{group}, overall accuracy from its domains",
                decimals(OVERALL[group], 2),
                decimals(mean),
                "arithmetic",
                rounds_to(mean, OVERALL[group], 2),
                "",
                (mean,),
            )
        )
    human = fmean(row[4] for row in TABLES["Table 1", "GPT3, None"]) / 100
    found.append(
        Row(
            "section 2.4",
            "guesses of human, GPT3",
            "two thirds",
            decimals(human),
            "arithmetic",
            abs(human - 2 / 3) < 0.03,
            "",
            (human,),
        )
    )
    return found
