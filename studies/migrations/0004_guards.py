"""PostgreSQL refuses what the managers refuse: designs and audit are append-only, a launched study's rows are frozen."""

from django.db import migrations

from studies.models.guards import append_only_operation, frozen_design_operation

OF_SECTION = "SELECT study_id FROM studies_section WHERE id = {row}.section_id"
OF_ARM = "SELECT study_id FROM studies_arm WHERE id = {row}.arm_id"
OF_SYSTEM = "SELECT study_id FROM studies_system WHERE id = {row}.system_id"
OF_ITEM = "SELECT study_id FROM studies_item WHERE id = {row}.item_id"
OF_BATCH = "SELECT study_id FROM studies_batch WHERE id = {row}.batch_id"


class Migration(migrations.Migration):
    replaces = [("studies", "0002_a_launched_design_does_not_change")]
    dependencies = [("studies", "0003_audit_and_jobs")]
    operations = [
        append_only_operation("studies_design"),
        append_only_operation("studies_auditevent"),
        frozen_design_operation("studies_system"),
        frozen_design_operation("studies_arm"),
        frozen_design_operation("studies_armsystem", OF_ARM),
        frozen_design_operation("studies_section"),
        frozen_design_operation("studies_sectionarm", OF_SECTION),
        frozen_design_operation("studies_question", OF_SECTION),
        frozen_design_operation("studies_contrast"),
        frozen_design_operation("studies_exclusionrule"),
        frozen_design_operation("studies_prompt"),
        frozen_design_operation("studies_output", OF_SYSTEM),
        frozen_design_operation("studies_item", mutable_columns=["settled_at"], allows_inserts=True),
        frozen_design_operation("studies_exposure", OF_ITEM, allows_inserts=True),
        frozen_design_operation("studies_expected", OF_ITEM, allows_inserts=True),
        frozen_design_operation("studies_batch", mutable_columns=["claimed"], allows_inserts=True),
        frozen_design_operation("studies_placement", OF_BATCH, allows_inserts=True),
    ]
