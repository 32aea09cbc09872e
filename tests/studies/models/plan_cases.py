"""Rows of plans and their pilots that the database must refuse, by constraint."""

from studies.models import PilotFile, SizePlan


def size_plan(w, **columns):
    usual = {"study": w["study"], "inputs": {}, "fingerprint": "f", "seed": 1, "result": {}}
    return SizePlan(**usual | columns)


def pilot_file(w, **columns):
    usual = {"study": w["study"], "sha256": "f", "name": "pilot.csv", "estimate": {}}
    return PilotFile(**usual | columns)


PLAN_CASES = {
    "size_plan_once_per_study_and_inputs": lambda w: size_plan(w).save() or size_plan(w),
    "size_plan_has_a_fingerprint": lambda w: size_plan(w, fingerprint=""),
    "pilot_file_once_per_study": lambda w: pilot_file(w).save() or pilot_file(w),
    "pilot_file_has_a_hash": lambda w: pilot_file(w, sha256=""),
}
