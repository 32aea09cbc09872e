from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "analysis"

    def ready(self):
        from studies import signals

        from . import exclusions, protocols

        exclusions.load_rules()
        protocols.load_analyses()
        from .planning import checklist
        from .protocols import family_checks

        for signal, receiver in (
            (signals.checking_draft, family_checks.find_family_problems),
            (signals.checking_draft, checklist.find_plan_problems),
            (signals.describing_forecast, checklist.describe_forecast),
            (signals.describing_families, family_checks.describe_families),
        ):
            signal.connect(receiver, dispatch_uid=f"{receiver.__module__}.{receiver.__qualname__}")
