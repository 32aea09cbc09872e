"""Rows of plans, their pilots and the parts of their jobs that the database must refuse, by constraint."""

from django.db.models.functions import Now

from studies.models import Job, JobPart, PilotFile, SizePlan, StudyPilot


def size_plan(w, **columns):
    usual = {"study": w["study"], "inputs": {}, "fingerprint": "f", "seed": 1, "result": {}}
    return SizePlan(**usual | columns)


def pilot_file(w, **columns):
    usual = {"study": w["study"], "sha256": "f", "name": "pilot.csv", "estimate": {}}
    return PilotFile(**usual | columns)


def job_part(w, **columns):
    job = Job.objects.get_or_create(kind="shared")[0]
    return JobPart(**{"job": job, "number": 1, "arguments": {}} | columns)


def study_pilot(w, **columns):
    usual = {"study": w["study"], "sha256": "f", "comparison": "x > y", "estimate": {}}
    return StudyPilot(**usual | columns)


PLAN_CASES = {
    "size_plan_once_per_study_and_inputs": lambda w: size_plan(w).save() or size_plan(w),
    "size_plan_has_a_fingerprint": lambda w: size_plan(w, fingerprint=""),
    "pilot_file_once_per_study": lambda w: pilot_file(w).save() or pilot_file(w),
    "pilot_file_has_a_hash": lambda w: pilot_file(w, sha256=""),
    "study_pilot_once_per_study_and_answers": lambda w: study_pilot(w).save() or study_pilot(w),
    "study_pilot_has_a_hash": lambda w: study_pilot(w, sha256=""),
    "job_part_once_per_number": lambda w: job_part(w).save() or job_part(w),
    "job_part_is_held_under_a_lease": lambda w: job_part(w, holder="me", leased_until=Now(), is_done=True),
    "job_part_has_a_result_when_it_is_done": lambda w: job_part(w, result=1),
}
