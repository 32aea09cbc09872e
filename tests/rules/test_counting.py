"""Only ``annotators.counting`` selects answers by their outcome. Any other query on assignments or answers is listed here and refused."""

import ast

from . import SOURCES, name, parsed, walk

FACTS = {
    "released_at",
    "released_reason",
    "withdrawn_at",
    "is_late",
    "submitted_at",
    "replaced_at",
    "judged_at",
    "judged_out",
    "origin",
}
QUERIES = {"filter", "exclude", "get", "Q", "When", "get_or_create", "update_or_create"}
# These packages decide who holds a place, who is paid, and what a page may still send. They are about people and their work, and use no
# answer for a number about systems.
ABOUT_PLACES_AND_PAY = {
    "annotators/models": "the constraints of the tables",
    "annotators/places": "who holds which place, until when, and the progress of places",
    "annotators/pages": "which pages may still be sent",
    "annotators/views": "what an annotator is shown of the own work",
    "annotators/participation": "withdrawal, and robots that take places",
    "annotators/pay": "what is owed for the work that was done",
    "annotators/recruitment": "what panels are told, and how many more people they are asked for",
    "annotators/admin": "the lists of assignments",
    "annotators/imports": "which assignments a file may add to",
}
# The module, and the one that stores what a stopping rule decided about a claim.
WHERE_IT_IS_DECIDED = ("annotators/counting.py", "analysis/data/planned_labels.py")
# Rows of other tables with columns of the same names.
OTHER_TABLES = (
    "Batch",
    "batches",
    "batch__",
    "Submission",
    "submission",
    "RoundEntry",
    "is_anonymous",
    "AnnotatorScreening",
    "screenings",
    "CodingSample",
    "coding_samples",
    "placements",
)


def queries_by_outcome(tree: ast.AST):
    """The calls that select rows by a fact about an assignment: (line, words)."""
    for node in walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in QUERIES:
            continue
        for keyword in node.keywords:
            path = (keyword.arg or "").split("__")
            if FACTS & set(path):
                yield node.lineno, ast.unparse(node), f"{keyword.arg}={ast.unparse(keyword.value)}"


def refused(files) -> list[str]:
    found = []
    for file, tree in files:
        if file in WHERE_IT_IS_DECIDED or any(file.startswith(f"{part}/") for part in ABOUT_PLACES_AND_PAY):
            continue
        for line, words, keyword in queries_by_outcome(tree):
            if not any(table in words for table in OTHER_TABLES):
                found.append(f"{file}, line {line}: {keyword}")
    return found


def test_no_other_query_selects_answers_by_their_outcome():
    files = [(name(path), parsed(path)) for path in SOURCES]
    assert len(files) > 400
    found = refused(files)
    assert not found, "select them with annotators.counting.select: " + "; ".join(found)


def test_the_packages_about_places_have_such_queries():
    """A package without one leaves the list."""
    files = [(name(path), parsed(path)) for path in SOURCES]
    used = {
        part
        for part in ABOUT_PLACES_AND_PAY
        for file, tree in files
        if file.startswith(f"{part}/")
        for _ in queries_by_outcome(tree)
    }
    assert used == ABOUT_PLACES_AND_PAY.keys()


def test_a_planted_query_is_found():
    for code in (
        "Assignment.objects.filter(study=study, withdrawn_at=None)",
        "study.assignments.exclude(released_reason='failed_checks')",
        "Response.objects.filter(assignment__submitted_at__isnull=False)",
        "Count('pk', filter=Q(is_late=True))",
        "rows.filter(item__assignment__origin__in=['live'])",
    ):
        assert len(refused([("analysis/data/new.py", ast.parse(code))])) == 1, code
    assert not refused([("analysis/new.py", ast.parse("Batch.objects.filter(origin='imported')"))])
