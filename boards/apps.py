from django.apps import AppConfig


class BoardsConfig(AppConfig):
    name = "boards"

    def ready(self) -> None:
        from studies.imports.image_storage import register_model_with_images
        from studies.services.series import register_series

        from .models import SubmittedOutput
        from .services.annotators import studies_of_board

        register_model_with_images(SubmittedOutput)
        # Answers to test questions are pooled over the rounds of a board.
        register_series(studies_of_board)
