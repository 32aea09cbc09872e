"""Jobs that open rounds and take snapshots of boards, and their schedule."""

from functools import partial

from studies.models import Job
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .models import Board, Submission
from .services import images, labels, metric_tables, rounds, snapshots
from .services.submissions import METRICS_KIND


@jobs.register(rounds.KIND, is_short=True, user_facing_errors=(ActionRefused,))
def open_round_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Make and launch the next round of a board."""
    board = Board.objects.select_related("template").get(pk=job.arguments["board"])
    opened = rounds.open_round(board, job.by, progress)
    return {"round": opened.number, "study": str(opened.study.code)}


@jobs.register(images.KIND, user_facing_errors=(ActionRefused,))
def check_images_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Read the images of a submission, and store it or list what is wrong."""
    return images.run_check(job, progress)


@jobs.register(snapshots.KIND, user_facing_errors=(ActionRefused,))
def take_snapshot_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compute the results of a board over its closed rounds."""
    progress(0, 1, "Reading the answers of the board's rounds")
    board = Board.objects.select_related("template").get(pk=job.arguments["board"])
    stored = snapshots.take_snapshot(board, job.by)
    metric_tables.request_again(stored, job.by)
    return {"snapshot": stored.number, "sha256": stored.result_sha256}


@jobs.register(metric_tables.KIND, is_batch=True, user_facing_errors=(ActionRefused,))
def compute_metrics_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compute metrics of a board's systems, and store them beside their scores by people."""
    board = Board.objects.select_related("template").get(pk=job.arguments["board"])
    parts_of = partial(jobs.StoredParts, job, progress)
    stored = metric_tables.compute_metric_table(
        board, job.by, job.arguments["names"], progress, parts_of=parts_of, record_stored=progress.record_stored
    )
    return {"snapshot": stored.snapshot.number, "sha256": stored.result_sha256}


@jobs.register(METRICS_KIND, is_batch=True, user_facing_errors=(ActionRefused,))
def compute_metrics_of_submission_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Compute metrics of a submission that has arrived."""
    one = Submission.objects.select_related("board__template").get(pk=job.arguments["submission"])
    parts_of = partial(jobs.StoredParts, job, progress)
    return {"metrics": metric_tables.compute_metrics_of_submission(one, progress, parts_of)}


@jobs.register(labels.KIND, user_facing_errors=(ActionRefused,))
def write_labels_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Write the file with the labels of all closed rounds of a board."""
    progress(0, 1, "Reading the answers of the board's rounds")
    return labels.write_labels_file(job)


@jobs.register_periodic(300)
def open_due_rounds() -> int:
    """Open rounds whose launch window has begun, if the budget allows it."""
    return rounds.submit_due_rounds()


@jobs.register_periodic(60)
def close_complete_rounds() -> int:
    """Close rounds whose places are all filled."""
    return rounds.close_complete_rounds()


@jobs.register_periodic(300)
def take_due_snapshots() -> int:
    """Take a snapshot of each board with a round that has closed since its last one."""
    return snapshots.submit_due_snapshots()
