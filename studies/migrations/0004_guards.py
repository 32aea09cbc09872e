"""PostgreSQL refuses what the managers refuse: designs and audit are append-only, a launched study's rows are frozen."""

from django.db import migrations

from studies.models.triggers import append_only, frozen

OF_SECTION = "SELECT study_id FROM studies_section WHERE id = {row}.section_id"
OF_ARM = "SELECT study_id FROM studies_arm WHERE id = {row}.arm_id"
OF_SYSTEM = "SELECT study_id FROM studies_system WHERE id = {row}.system_id"
OF_ITEM = "SELECT study_id FROM studies_item WHERE id = {row}.item_id"
OF_BATCH = "SELECT study_id FROM studies_batch WHERE id = {row}.batch_id"


class Migration(migrations.Migration):
    replaces = [("studies", "0002_a_launched_design_does_not_change")]
    dependencies = [("studies", "0003_audit_and_jobs")]
    operations = [
        append_only("studies_design"),
        append_only("studies_auditevent"),
        frozen("studies_system"),
        frozen("studies_arm"),
        frozen("studies_armsystem", OF_ARM),
        frozen("studies_section"),
        frozen("studies_sectionarm", OF_SECTION),
        frozen("studies_question", OF_SECTION),
        frozen("studies_contrast"),
        frozen("studies_exclusionrule"),
        frozen("studies_prompt"),
        frozen("studies_output", OF_SYSTEM),
        frozen("studies_item", changes=["settled_at"], grows=True),
        frozen("studies_exposure", OF_ITEM, grows=True),
        frozen("studies_expected", OF_ITEM, grows=True),
        frozen("studies_batch", changes=["claimed"], grows=True),
        frozen("studies_placement", OF_BATCH, grows=True),
    ]
