"""What the forms of *Plan* have in common whose job simulates something and stores nothing but its result."""

from typing import Any, ClassVar

from django import forms

from studies.access import Action, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import FieldsRefused


class SimulationForm(forms.Form):
    """A form for the options of the job ``kind``, whose results have the format ``result_format``."""

    kind: ClassVar[str]
    result_format: ClassVar[str]

    def __init__(self, *args, user: Any, **kwargs):
        super().__init__(*args, **kwargs)
        self.user = user

    @classmethod
    def request(cls, study: Study, by, options: dict[str, Any], request_token: str | None = None) -> Job:
        """Submit the job. What ``options`` lack is as the form has it first. Raise FieldsRefused if a value is not valid."""
        check_permission_or_404(by, Action.EDIT, study)
        first = {name: field.initial for name, field in cls.base_fields.items()}
        form = cls(first | options, user=by)
        if not form.is_valid():
            raise FieldsRefused({name: str(texts[0]) for name, texts in form.errors.items()})
        return jobs.submit(cls.kind, study=study, by=by, request_token=request_token, options=form.cleaned_data)

    @classmethod
    def latest(cls, study: Study) -> dict[str, Any] | None:
        """Return the newest result and when it was computed, or None."""
        done = study.jobs.filter(kind=cls.kind, state=Job.State.DONE, result__format=cls.result_format)
        job = done.order_by("-pk").first()
        return None if job is None or not job.result else job.result | {"at": job.ended_at}
