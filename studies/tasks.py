"""The jobs of a study's life."""

from . import jobs, kept_images, lifecycle
from .importing import work  # noqa: F401 - it registers the import
from .models import Job


@jobs.register("launch", exclusive=True, readable=(lifecycle.NotNow,))
def launch(job: Job, progress: jobs.Progress) -> dict:
    """Freeze the design and draw the batches. A second attempt finds the study launched and changes nothing."""
    study = job.study
    if study.launched_at is None:
        study = lifecycle.launch(
            study, by=job.by, acknowledged=job.arguments.get("acknowledged", ()), progress=progress
        )
    return {"study": str(study.code), "batches": study.batches.count()}


@jobs.every(86_400)
def remove_forgotten_images() -> int:
    """Images that no study names: their import was killed, or their study was deleted."""
    return kept_images.remove_forgotten()
