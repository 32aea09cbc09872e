"""Files of scores, and clients of people with a role, for tests of metrics and judges."""

import csv
import io

from django.test import Client

from studies.models import Output, StudyMember
from tests.builders import user


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


def client_of(study, role="viewer"):
    """A client of a person with this role; the same person each time."""
    member = user(f"a-{role}")
    StudyMember.objects.get_or_create(study=study, user=member, defaults={"role": role})
    client = Client()
    client.force_login(member)
    return client
