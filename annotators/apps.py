from django.apps import AppConfig


def render_first_question(**asked):
    """Return the first page on which a draft's section asks. The preview is imported when it is needed."""
    from .admin import preview

    return preview.render_first_question(asked["request"], asked["study"], asked["section"])


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies import signals as studies_signals
        from studies.imports.tables import run

        from . import imports
        from .pay import decisions, ledger, promises
        from .places import batch_plan, monitor
        from .recruitment import channels, links
        from .recruitment import signals as recruitment_signals
        from .recruitment.panels import sync as panel_work

        channels.load_channels()
        panel_work.register_optional_sync_step("approves", decisions.approve_matched_submissions)
        for signal, receiver in (
            (studies_signals.deleting_test_runs, batch_plan.erase_test_run_data),
            (studies_signals.deleting_draft, batch_plan.delete_draft_recruitments),
            (studies_signals.checking_draft, promises.find_pay_problems),
            (studies_signals.checking_draft, links.find_link_problems),
            (studies_signals.counting_progress, monitor.progress_by_study),
            (studies_signals.rendering_first_question, render_first_question),
            (recruitment_signals.collect_obstacles, ledger.collect_pay_obstacles),
            (recruitment_signals.collect_alerts, ledger.collect_retention_alerts),
            (recruitment_signals.submissions_imported, ledger.update_ledger_after_import),
        ):
            signal.connect(receiver, dispatch_uid=f"{receiver.__module__}.{receiver.__qualname__}")
        answers = run.Importer(
            imports.import_answers_and_close_draft,
            imports.reason_answers_not_importable,
            imports.checked_options,
            "import_answers",
            "Write the answers",
            imports.role_labels,
            imports.options_with_roles,
        )
        run.register_importer("answers", answers)
