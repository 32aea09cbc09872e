"""What researchers do to a study, each act once in a table: its permission, its one line in the log, its refusal that changes nothing.

A function of the code that writes into the log and is in no table, nor in the list of those in which no researcher acts, fails.
So does one that need not be told who acts.
"""

import ast

import pytest
from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.http import Http404

from studies.access import PERMISSIONS, Action, Role
from studies.models import AuditEvent, Study, StudyMember
from studies.services.lifecycle import ActionRefused
from tests import ROOT, acts_of_people, acts_of_studies, builders
from tests.rules import parsed, walk

pytestmark = pytest.mark.django_db
ACTS = acts_of_studies.ACTS | acts_of_people.ACTS
ASKED = acts_of_studies.ASKED | acts_of_people.ASKED
ELSEWHERE = {
    "annotators/participation/withdrawal:withdraw_annotator_and_erase_texts": "an annotator acts",
    "annotators/pay/decisions:_store_appeal": "an annotator acts",
    "annotators/places/barrings:bar_flagged_annotators": "the declared rule acts",
    "annotators/places/monitor:_top_up": "the site itself acts",
    "analysis/metrics/store:store_computed_scores": "the job of computed:request_metrics, which checks who asks",
    "annotators/pay/decisions:record_panel_rejection": "the panel acted",
    "analysis/report/stopping:apply_stopping_rules": "the stopping rule acts",
    "annotators/pay/decisions:reject_work": "its evidence is long to make: tests/annotators/pay/verdicts/test_decide.py; who may is tested here",
    "annotators/recruitment/panels/orders:get_or_create_order": "the order of an act that has a line of its own, or none but this",
    "annotators/recruitment/panels/orders:create_orders": "the same of many",
    "annotators/imports/run:import_answers_and_close_draft": "freezes the draft too: tests/annotators/imports/test_import_answers.py",
    "studies/imports/tables/writing:remove_unfinished_stimuli": "removes what an import of that person has left: tests/studies/imports/tables/test_interrupted.py",
    "analysis/api/collecting:list": "reads messages, by a token with the scope of people: tests/analysis/api/test_collecting_over_rest.py",
    "analysis/api/tokens:revoke_token": "a token is its owner's: tests/analysis/api/test_tokens.py",
}


def stored() -> dict[str, list[tuple]]:
    """Every row of the three apps, to the last column."""
    models = [model for model in apps.get_models() if model._meta.app_label in ("studies", "annotators", "analysis")]
    return {model._meta.label: list(model._base_manager.order_by("pk").values_list()) for model in models}


@pytest.fixture
def owner():
    return builders.user("olga")


def people_without(action: Action, study: Study):
    """A person of each role that does not allow it, and somebody without any."""
    if PERMISSIONS[action].roles is None:
        person = builders.user("an annotator")
        person.is_staff = False
        yield person, PermissionDenied
        return
    for role in set(Role) - PERMISSIONS[action].roles:
        person = builders.user(f"a {role}")
        StudyMember.objects.create(study=study, user=person, role=role)
        yield person, PermissionDenied
    yield builders.user("a stranger"), Http404


def writers(tree: ast.AST) -> set[str]:
    """The functions that write into the log."""
    verbs = {"audit.record", "audit.bulk_record", "audit.record_study_event"}
    return {
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and any(isinstance(node, ast.Call) and ast.unparse(node.func) in verbs for node in ast.walk(function))
    }


def test_every_act_is_in_the_table():
    found = {
        f"{path.relative_to(ROOT).with_suffix('')}:{name}"
        for app in ("studies", "annotators", "analysis")
        for path in (ROOT / app).rglob("*.py")
        if "audit" in path.read_text(encoding="utf-8")
        for name in writers(parsed(path))
    }
    assert found == {name.partition(",")[0] for name in ACTS} | set(ELSEWHERE)


def test_the_search_for_acts_finds_one():
    assert writers(
        ast.parse("def f():\n with g():\n  audit.record_study_event('x', study, by)\ndef h(): record('x')")
    ) == {"f"}


def defaults_of_by(tree: ast.AST):
    """Functions whose parameter ``by`` has a default."""
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            taken = node.args
            ordinary = [*taken.posonlyargs, *taken.args]
            with_default = ordinary[len(ordinary) - len(taken.defaults) :]
            with_default += [one for one, given in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if given]
            if any(one.arg == "by" for one in with_default):
                yield node.lineno, getattr(node, "name", "lambda")


def test_who_acts_is_always_said():
    """None is the site itself, which may do everything: nobody becomes it by leaving ``by`` out."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for app in ("studies", "annotators", "analysis", "boards", "heval_site")
        for path in (ROOT / app).rglob("*.py")
        for line, name in defaults_of_by(parsed(path))
    ]
    assert not found, found


@pytest.mark.parametrize("words", ["a, by=None", "a, by: object = None, b=1", "by=None, /", "*, b=1, by=None, c"])
def test_the_search_for_defaults_of_by_finds_them(words):
    assert list(defaults_of_by(ast.parse(f"def f({words}): pass"))) == [(1, "f")]
    assert list(defaults_of_by(ast.parse(f"g = lambda {words}: 0".replace(": object", "")))) == [(1, "lambda")]
    assert not list(defaults_of_by(ast.parse("def f(by, a=None, *, c=None): pass\ndef g(*, b=1, by): pass")))


@pytest.mark.parametrize("name", [*ACTS, *ASKED])
def test_an_act_is_refused_to_users_without_the_permission(name, owner):
    action, prepare, do = ASKED[name] if name in ASKED else (ACTS[name].action, ACTS[name].prepare, ACTS[name].do)
    world = prepare(owner)
    people = list(people_without(action, world.study))
    before = stored()
    for person, refusal in people:
        with pytest.raises(refusal):
            do(world, person)
        assert stored() == before, person


@pytest.mark.parametrize("name", ACTS)
def test_an_act_writes_one_line_into_the_log(name, owner):
    act = ACTS[name]
    world = act.prepare(owner)
    before = set(AuditEvent.objects.values_list("pk", flat=True))
    act.do(world, owner)
    (event,) = AuditEvent.objects.exclude(pk__in=before)
    assert (event.verb, event.by) == (act.verb, owner)


@pytest.mark.parametrize("name", [name for name, act in ACTS.items() if not act.may_repeat])
def test_a_refused_act_changes_nothing(name, owner):
    act = ACTS[name]
    world = act.prepare(owner)
    act.do(world, owner)
    act.spoil(world)
    before = stored()
    with pytest.raises(ActionRefused):
        (act.again or act.do)(world, owner)
    assert stored() == before
