from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies import signals as studies_signals
        from studies.imports.tables import import_job

        from . import imports
        from .pay import promises, receivers
        from .pay.verdicts import approving
        from .places import monitor, tries
        from .recruitment import channels
        from .recruitment import signals as recruitment_signals
        from .recruitment.panels import sync as panel_work

        channels.load()
        panel_work.register_step("approves", approving.approve_matched)
        for signal, receiver in (
            (studies_signals.clearing_tries, tries.clear_tries),
            (studies_signals.deleting_draft, tries.clear_people),
            (studies_signals.checking_draft, promises.problems_of),
            (studies_signals.counting_progress, monitor.progress_of),
            (recruitment_signals.collect_hindrances, receivers.name_missing_promises),
            (recruitment_signals.collect_alerts, receivers.name_kept_ids),
            (recruitment_signals.submissions_taken_in, receivers.settle_ledger),
        ):
            signal.connect(receiver, dispatch_uid=f"{receiver.__module__}.{receiver.__qualname__}")
        answers = import_job.Importer(imports.import_answers, imports.refusal, "import_answers", "Write the answers")
        import_job.register("answers", answers)
