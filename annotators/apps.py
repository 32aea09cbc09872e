from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from studies import copying, lifecycle
        from studies.importing import work

        from . import channels, importing, tries

        channels.load()
        for hooks, function in (
            (lifecycle.before_launch, tries.clear_tries),
            (copying.before_delete, tries.clear_people),
        ):
            if function not in hooks:
                hooks.append(function)
        work.IMPORTERS["answers"] = work.Importer(
            importing.import_answers, importing.refusal, "import_answers", "Write the answers"
        )
