from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "studies"

    def ready(self):
        from . import protocols
        from .models import Arm, Section, guards

        protocols.load()
        guards.connect(Arm.systems.through, Section.arms.through)
