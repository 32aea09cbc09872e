"""Everything that people do on pages has an operation of the REST interface, or a written reason."""

from django.urls import get_resolver

from analysis.api.schema import describe_api
from studies.access import PERMISSIONS, Action
from tools.reference.operations import (
    TABLE,
    operations_by_page,
    operations_of_acts,
    pages_of_people,
    reasons_by_page,
)

# Actions without a view of their own, and where they are checked.
ELSEWHERE = {
    Action.CREATE: "the list of studies",
    Action.CREATE_TOKEN: "the list of tokens",
    Action.REJECT: "a person decides, as the table of pages says",
}


def published():
    """Return the operations of the description, without what the address is below."""
    return {
        f"{method.upper()} {path.removeprefix('/api/v1/')}"
        for path, methods in describe_api()["paths"].items()
        for method in methods
    }


def test_every_page_and_model_has_an_operation_or_a_reason():
    named = [*operations_by_page(), *reasons_by_page()]
    assert len(named) == len(set(named)), "a page is named twice"
    assert set(named) == pages_of_people()
    assert all(operations_by_page().values())
    assert all(reason.endswith(".") and len(reason.split()) > 4 for reason in TABLE["without"])


def test_every_operation_that_the_table_names_exists():
    named = {one for operations in operations_by_page().values() for one in operations} | set(
        operations_of_acts().values()
    )
    assert named <= published(), named - published()


def test_every_permission_is_asked_for_by_an_operation():
    views = [pattern.callback.cls for pattern in _api_patterns() if hasattr(pattern.callback, "cls")]
    asked = {
        action
        for view in views
        for action in (
            getattr(view, "read_action", None),
            getattr(view, "write_action", None),
            *getattr(view, "actions", {}).values(),
            getattr(getattr(view, "act", None), "action", None),
        )
        if action is not None
    }
    assert asked | set(ELSEWHERE) == set(PERMISSIONS)
    assert not asked & set(ELSEWHERE)


def _api_patterns():
    api = next(one for one in get_resolver().url_patterns if str(one.pattern) == "api/v1/")
    return api.url_patterns
