from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies import copying, design, lifecycle
        from studies.importing import work

        from . import channels, importing, tries
        from .panels import alerts, publishing, reconcile
        from .panels import work as panel_work
        from .pay import book, keeping, promises
        from .verdicts import approving

        channels.load()
        panel_work.FIRST["approves"] = approving.approve_matched
        for hooks, function in (
            (lifecycle.before_launch, tries.clear_tries),
            (copying.before_delete, tries.clear_people),
            (design.further_problems, promises.problems_of),
            (reconcile.after_looks, book.settle),
            (publishing.further_hindrances, promises.hindrances),
            (alerts.further_checks, keeping.alerts_of),
        ):
            if function not in hooks:
                hooks.append(function)
        work.IMPORTERS["answers"] = work.Importer(
            importing.import_answers, importing.refusal, "import_answers", "Write the answers"
        )
