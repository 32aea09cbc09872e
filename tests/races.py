"""Work that several do in the same moment, and what must hold then."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connections

from annotators.models import Assignment
from studies.models import Batch


def all_at_once(work, arguments, threads):
    """Run ``work`` on every argument, the first ``threads`` of them released together; gives results and errors."""
    start = Barrier(threads)

    def run(place, argument):
        try:
            if place < threads:
                start.wait(30)
            return work(argument)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(run, n, a) for n, a in enumerate(arguments)]]


def counts_are_true(study):
    held = Counter(Assignment.objects.filter(study=study, released_at=None).values_list("batch", flat=True))
    return all(batch.claimed == held[batch.pk] <= batch.wanted for batch in Batch.objects.filter(study=study))
