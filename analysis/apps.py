from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "analysis"

    def ready(self):
        from . import exclusions  # noqa: F401 - importing it fills the registry of rules
