"""The background jobs of the app studies."""

from .imports import image_storage
from .imports.tables import run  # noqa: F401 - it registers the import
from .models import Job
from .services import jobs, lifecycle


@jobs.register("launch", is_one_per_study=True, is_short=True, user_facing_errors=(lifecycle.ActionRefused,))
def run_launch_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Freeze the design and draw the batches. A second attempt finds the study launched and changes nothing."""
    study = job.study
    if study.launched_at is None:
        study = lifecycle.launch(
            study, by=job.by, acknowledged=job.arguments.get("acknowledged", ()), progress=progress, job=job
        )
    return {"study": str(study.code), "batches": study.batches.count()}


@jobs.register_periodic(86_400)
def delete_old_orphaned_images() -> int:
    """Remove images that no study names. They come from killed imports and deleted studies."""
    return image_storage.delete_old_orphaned_images()
