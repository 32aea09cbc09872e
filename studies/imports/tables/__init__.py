"""Import prompts, outputs and ready-made batches from files into a draft. docs: reference/import-formats."""

from .columns import Options
from .result import ImportReport
from .run import import_stimuli_file
from .writing import StudyChanged

__all__ = ["StudyChanged", "Options", "ImportReport", "import_stimuli_file"]
