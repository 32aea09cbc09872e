"""A family of comparisons declares its method and its order, as a part of the design; designs without families keep their hash."""

import json

import pytest
from django.db import IntegrityError, transaction

from analysis.protocols.families import declared_family_sizes, describe_families
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.bundle_files import create_draft_from_bundle, serialize_bundle
from studies.models import ComparisonFamily, Contrast, Design, Study
from studies.models.guards import StudyFrozen
from studies.services.copying import clone_study, delete_or_archive_draft
from tests.admin_pages import form_of, logged_in, study_url
from tests.builders import add_choice, add_ranking, draft_study, launched, spa_draft, user, warnings_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    """A primary and a secondary comparison, without an order."""
    study = spa_draft(prompts=6, owner=user("owner"))
    study.contrasts.filter(pk=study.contrasts.last().pk).update(role="secondary")
    return study


def declared(study, **columns):
    return ComparisonFamily.objects.create(study=study, **{"name": "secondary", "after": "primary"} | columns)


def test_only_declared_families_are_in_the_design(study):
    before = serialize_design(study)
    assert "comparison_families" not in before
    row = declared(study, adjustment="hommel")
    after = serialize_design(study)
    assert after["comparison_families"] == [{"name": "secondary", "adjustment": "hommel", "after": "primary"}]
    assert sha256_of(canonical_json(before)) != sha256_of(canonical_json(after))
    row.delete()
    assert serialize_design(study) == before


def test_a_launch_freezes_them(study):
    row = declared(study)
    study = launched(study)
    assert json.loads(Design.objects.get(study=study).canonical)["comparison_families"][0]["after"] == "primary"
    for change in (row.delete, lambda: declared(study, name="more"), study.comparison_families.all().delete):
        with pytest.raises(StudyFrozen):
            change()


def test_copies_and_bundles_keep_them(study):
    declared(study, adjustment="holm")
    for copy in (clone_study(study, study.owner), create_draft_from_bundle(serialize_bundle(study), study.owner)):
        assert serialize_design(copy)["comparison_families"] == serialize_design(study)["comparison_families"]


def test_a_bundle_from_before_they_existed_is_read(study):
    bundle = serialize_bundle(study)
    assert "comparison_families" not in bundle
    assert not create_draft_from_bundle(bundle, study.owner).comparison_families.exists()


def test_a_draft_is_deleted_with_them(study):
    declared(study)
    delete_or_archive_draft(study, study.owner)
    assert not ComparisonFamily.objects.exists()


def test_no_family_is_declared_twice_or_after_itself(study):
    declared(study)
    for columns in ({}, {"name": "primary"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            declared(study, **columns)


@pytest.mark.slow
def test_the_checklist_warns_of_primary_and_secondary_without_an_order(study):
    words = "have no order. The error level holds in each family, not over both."
    assert [text for text in warnings_of(study) if "unordered" in text] == ["unordered_families:primary:secondary"]
    page = logged_in(study.owner).get(study_url(study)).content.decode()
    assert words in page and "comparison_families-group" in page
    declared(study)
    assert words not in logged_in(study.owner).get(study_url(study)).content.decode()


def test_the_checklist_warns_of_different_levels_in_an_order(study):
    def warned():
        return [text for text in warnings_of(study) if "levels" in text]

    row = declared(study)
    contrasts = Contrast.objects.filter(study=study)
    assert not warned()
    for level, role in ((0.01, "secondary"), (0.1, "primary")):
        contrasts.filter(role=role).update(level=level)
        assert warned() == ["levels_of_ordered_families:primary:secondary"]
    contrasts.update(level=0.01)
    assert not warned()
    contrasts.filter(role="primary").update(level=0.1)
    row.delete()
    assert not warned()


def test_an_order_may_lead_over_other_families(study):
    Contrast.objects.filter(study=study, role="primary").update(family="overall")
    declared(study, after="middle")
    declared(study, name="middle", after="overall")
    assert not [key for key in warnings_of(study) if "unordered" in key]


def test_the_page_says_how_many_sentences_each_family_has():
    study = draft_study(prompts=6, owner=user("owner"))
    for position in (1, 2):
        study.contrasts.all().delete()
        add_ranking(study, position=position, m=3)
    study.contrasts.all().delete()
    alpha, beta, gamma = study.systems.order_by("name")
    Contrast.objects.create(study=study, x=beta, y=alpha)
    Contrast.objects.create(study=study, x=gamma, y=alpha, role="secondary", section=study.sections.last())
    declared(study, adjustment="hommel")
    described = {row.pop("name"): row for row in describe_families(study)}
    assert described == {
        "primary": {"n_sentences": 2, "adjustment": "Bonferroni", "after": "", "pairs": [("beta and alpha", 2)]},
        "secondary": {"n_sentences": 1, "adjustment": "Hommel", "after": "primary", "pairs": [("gamma and alpha", 1)]},
    }
    assert declared_family_sizes(study) == {"primary": 2, "secondary": 1}
    for url in (study_url(study), f"/admin/studies/study/{study.pk}/launch/"):
        page = logged_in(study.owner).get(url).content.decode()
        assert "beta and alpha</bdi> (2)" in page and "tested only if all of primary were shown" in page, url


def test_a_row_is_entered_on_the_page(study):
    client = logged_in(study.owner)
    data = form_of(client.get(f"{study_url(study)}?rows=1"), "study_form")
    data |= {"comparison_families-TOTAL_FORMS": ["1"]} | {
        f"comparison_families-0-{name}": [value]
        for name, value in (("name", " secondary "), ("adjustment", "hommel"), ("after", "primary"))
    }
    assert client.post(study_url(study), data).status_code == 302
    (row,) = Study.objects.get(pk=study.pk).comparison_families.all()
    assert (row.name, row.adjustment, row.after) == ("secondary", "hommel", "primary")


def test_a_stopping_rule_shares_the_level_of_its_declared_family():
    from analysis.data.planned_labels import read_planned_labels_of_claimed_batches
    from analysis.protocols.two_choice.labels import primary_comparison_stopping_statuses

    study = draft_study(prompts=12, target_n=4)
    add_choice(study, m=2, stopping="anytime", strategy="one")
    labels, section = read_planned_labels_of_claimed_batches(study), study.sections.get()

    def thresholds():
        return [round(10**status.threshold) for status in primary_comparison_stopping_statuses(labels, section)]

    assert thresholds() == [40, 40]
    first = study.contrasts.first()
    Contrast.objects.filter(pk=first.pk).update(family="first")
    assert thresholds() == [40, 40]
    row = declared(study, name="first", after="")
    assert sorted(thresholds()) == [20, 40]
    row.delete()
    declared(study, name="third", after="first")
    assert sorted(thresholds()) == [20, 40]
