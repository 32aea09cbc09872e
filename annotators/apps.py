from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies import signals
        from studies.imports.tables import import_job

        from . import imports
        from .pay import keeping, ledger, promises
        from .pay.verdicts import approving
        from .places import monitor, tries
        from .recruitment import channels
        from .recruitment.panels import alerts, publishing, reconcile
        from .recruitment.panels import sync as panel_work

        channels.load()
        panel_work.FIRST["approves"] = approving.approve_matched
        for hooks, function in (
            (reconcile.after_looks, ledger.settle),
            (publishing.further_hindrances, promises.hindrances),
            (alerts.further_checks, keeping.alerts_of),
        ):
            if function not in hooks:
                hooks.append(function)
        for signal, receiver in (
            (signals.clearing_tries, tries.clear_tries),
            (signals.deleting_draft, tries.clear_people),
            (signals.checking_draft, promises.problems_of),
            (signals.counting_progress, monitor.progress_of),
        ):
            signal.connect(receiver, dispatch_uid=f"{receiver.__module__}.{receiver.__qualname__}")
        answers = import_job.Importer(imports.import_answers, imports.refusal, "import_answers", "Write the answers")
        import_job.register("answers", answers)
