"""The stand-in, the service that speaks to it and a published study, for every test of Prolific's service."""

import pytest

from annotators.recruitment.channels.prolific.service import ProlificService
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from tests.annotators.recruitment.channels.prolific.submissions import CODES


@pytest.fixture
def fake():
    with ProlificStandIn() as fake:
        yield fake


@pytest.fixture
def service(fake):
    return ProlificService(TOKEN, CODES, fake.url)


@pytest.fixture
def task(fake):
    return fake.add_study()
