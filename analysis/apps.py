from django.apps import AppConfig


class AnalysisConfig(AppConfig):
    name = "analysis"

    def ready(self):
        from studies import signals

        from . import exclusions, protocols

        exclusions.load_rules()
        protocols.load_analyses()
        from .metrics import dataset, result_tables
        from .planning import checklist
        from .protocols import families

        result_tables.register_result_tables()
        dataset.register_dataset()
        for signal, receiver in (
            (signals.checking_draft, families.find_family_problems),
            (signals.checking_draft, checklist.find_plan_problems),
            (signals.describing_forecast, checklist.describe_forecast),
            (signals.describing_families, families.describe_families),
        ):
            signal.connect(receiver, dispatch_uid=f"{receiver.__module__}.{receiver.__qualname__}")
