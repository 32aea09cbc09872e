from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies import copying, design, lifecycle
        from studies.importing import work

        from . import channels, importing, tries
        from .pay import promises

        channels.load()
        for hooks, function in (
            (lifecycle.before_launch, tries.clear_tries),
            (copying.before_delete, tries.clear_people),
            (design.further_problems, promises.problems_of),
        ):
            if function not in hooks:
                hooks.append(function)
        work.IMPORTERS["answers"] = work.Importer(
            importing.import_answers, importing.refusal, "import_answers", "Write the answers"
        )
