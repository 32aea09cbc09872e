from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "analysis"

    def ready(self):
        from . import exclusions, protocols

        exclusions.load_rules()
        protocols.load_analyses()
