"""A launched study, and a browser that gets an error page instead of an exception."""

import pytest
from django.test import Client

from tests.builders import spa_study


@pytest.fixture
def study(db):
    return spa_study(target_n=4)


@pytest.fixture
def client():
    return Client(raise_request_exception=False)
