"""Answers of researchers to the questions of forms that only a person can answer. Each is stored once per study."""

from collections.abc import Mapping

from django.db import transaction

from analysis.models import ReportAnswer
from studies.access import Action, check_permission_or_404
from studies.models import Study, audit
from studies.services.lifecycle import FieldsRefused

from .facts import collect_facts

MAX_ANSWER = 5000


def save_answers(study: Study, answers: Mapping[str, str], by) -> list[str]:
    """Store the answers that changed, and return their keys. An empty text opens the question again. Raises FieldsRefused."""
    check_permission_or_404(by, Action.ANALYSE, study)
    if unknown := sorted(set(answers) - {question.key for question in collect_facts(study).questions}):
        raise FieldsRefused(
            {unknown[0]: "no form about this study asks a person this. Read the keys of the questions first."}
        )
    with transaction.atomic():
        Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
        stored = dict(ReportAnswer.objects.filter(study=study).values_list("key", "text"))
        changed = {key: text.strip() for key, text in answers.items() if text.strip() != stored.get(key, "")}
        if not changed:
            return []
        ReportAnswer.objects.bulk_create(
            [ReportAnswer(study=study, key=key, text=text) for key, text in changed.items()],
            update_conflicts=True,
            unique_fields=["study", "key"],
            update_fields=["text"],
        )
        audit.record_study_event("answer questions of forms", study, by=by, keys=sorted(changed))
    return sorted(changed)
