"""Prompts, outputs and ready-made batches from files into a draft. docs: reference/import-formats."""

from .options import Options
from .result import Report
from .run import import_file
from .writing import Moved

__all__ = ["Moved", "Options", "Report", "import_file"]
