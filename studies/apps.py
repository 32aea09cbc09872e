from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "studies"

    def ready(self):
        from . import protocols
        from .models import Arm, Section, guards

        protocols.load_protocols()
        guards.connect_m2m_guards(Arm.systems.through, Section.arms.through)
