from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "analysis"

    def ready(self):
        from . import exclusions, protocols

        exclusions.load()
        protocols.load()
