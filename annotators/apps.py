from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies.design import definition
        from studies.imports.tables import import_job
        from studies.services import copying, lifecycle

        from . import imports
        from .pay import keeping, ledger, promises
        from .pay.verdicts import approving
        from .places import tries
        from .recruitment import channels
        from .recruitment.panels import alerts, publishing, reconcile
        from .recruitment.panels import sync as panel_work

        channels.load()
        panel_work.FIRST["approves"] = approving.approve_matched
        for hooks, function in (
            (lifecycle.before_launch, tries.clear_tries),
            (copying.before_delete, tries.clear_people),
            (definition.further_problems, promises.problems_of),
            (reconcile.after_looks, ledger.settle),
            (publishing.further_hindrances, promises.hindrances),
            (alerts.further_checks, keeping.alerts_of),
        ):
            if function not in hooks:
                hooks.append(function)
        import_job.IMPORTERS["answers"] = import_job.Importer(
            imports.import_answers, imports.refusal, "import_answers", "Write the answers"
        )
