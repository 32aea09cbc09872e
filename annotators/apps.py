from django.apps import AppConfig


class AnnotatorsConfig(AppConfig):
    name = "annotators"

    def ready(self):
        from . import channels

        channels.load()
