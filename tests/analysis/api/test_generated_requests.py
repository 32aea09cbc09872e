"""Requests that Schemathesis makes of the description, valid and invalid: each answer is as the description says.

20,000 cases run with ``--slow``; a few run always. Each case begins with the same studies, and is rolled back.
"""

from datetime import timedelta
from functools import partial

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode

from analysis.api.tokens import create_token
from annotators.models import Recruitment
from annotators.participation.link_actions import create_link
from heval_site.wsgi import application
from tests.builders import spa_draft
from tests.size_plans import planned_size

from .rest import analysis_of, closed_study, comparison_of

pytestmark = pytest.mark.django_db
# Rules about what is stored cannot be written into a description, so that a request of the right form may be refused.
# 412: the study has another revision than If-Match says.
REFUSED = ["400", "401", "403", "404", "405", "409", "412", "415", "422", "429", "503"]
CONFIG = {
    "checks": {
        "positive_data_acceptance": {"expected-statuses": ["2xx", *REFUSED]},
        "negative_data_rejection": {"expected-statuses": REFUSED},
    }
}


@pytest.fixture
def world(owner, settings, tmp_path, monkeypatch, request):
    """Parts of addresses that exist: those of a closed study and those of a draft; and an owner's token."""
    for module in ("analysis.api.permissions", "boards.api.base"):
        monkeypatch.setattr(f"{module}.requests_per_minute", lambda scope: 10**6, raising=False)
    settings.MEDIA_ROOT = tmp_path
    # As Django's own test client does: a request must not end the connection that is rolled back.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
        request.addfinalizer(partial(signal.connect, close_old_connections))
    study, draft = closed_study(owner, 1), spa_draft(owner=owner)
    analysis_of(study)
    comparison_of(study)
    link = create_link(Recruitment(study=draft, channel="open_link"), owner)
    parts = {"number": 1, "plan": planned_size(draft).pk, "position": 1, "item": 1, "key": link.key}
    expires_at = timezone.now() + timedelta(days=2)
    token = create_token(owner, "test", scope="people", expires_at=expires_at, may_make_tokens=True)[1]
    return token, [{**parts, "code": str(one.code)} for one in (study, draft)]


def test_a_few_generated_requests_are_answered_as_described(world):
    problems = failures_of(world, 1_000)
    assert not problems, "\n\n".join(problems.values())


@pytest.mark.slow
def test_many_generated_requests_are_answered_as_described(world):
    problems = failures_of(world, 20_000)
    assert not problems, "\n\n".join(problems.values())


def failures_of(world, n_cases):
    """Return what is wrong with the answers, once for each operation and kind."""
    token, known = world
    config = schemathesis.Config.from_dict(CONFIG)
    schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", application, config=config)
    operations = [result.ok() for result in schema.get_all_operations()]
    checks = CHECKS.get_all()
    found = {}

    def send(case):
        try:
            with transaction.atomic():
                try:
                    case.call_and_validate(headers={"Authorization": f"Token {token}"}, checks=checks)
                finally:
                    transaction.set_rollback(True)
        except FailureGroup as group:
            for failure in group.exceptions:
                found.setdefault((failure.title, case.operation.label), f"{failure}\n{case.as_curl_command()}")

    for operation in operations:
        modes = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]

        @settings(
            max_examples=max(1, n_cases // len(operations)),
            database=None,
            derandomize=True,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=st.one_of([operation.as_strategy(mode) for mode in modes]), parts=st.sampled_from([*known, {}]))
        def run(case, parts):
            for name in set(case.path_parameters or ()) & set(parts):
                case.path_parameters[name] = parts[name]
            send(case)

        run()
    return found
