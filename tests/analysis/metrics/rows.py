"""Rows of scores for the outputs of a study, and files of them."""

import csv
import io

from studies.models import Output


def table(rows):
    """A CSV file of rows, each a dictionary."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def rows_of(study, **columns):
    """A row for each output; the scores of a column count up from its number."""
    outputs = Output.objects.filter(system__study=study).values_list("system__name", "prompt__key")
    return [
        {"system": system, "prompt": prompt} | {name: start + number % 3 for name, start in columns.items()}
        for number, (system, prompt) in enumerate(outputs)
    ]
