from django.apps import AppConfig


class BoardsConfig(AppConfig):
    name = "boards"

    def ready(self) -> None:
        from studies.imports.image_storage import register_model_with_images

        from .models import SubmittedOutput

        register_model_with_images(SubmittedOutput)
