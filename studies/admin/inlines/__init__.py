"""The parts of a study that stand on its own page are tables of rows there; a section's questions stand on the section's page."""

from .contrasts import Contrasts
from .design import Arms, ExclusionRules, Sections, Systems
from .members import Members

INLINES = [Systems, Arms, Sections, Contrasts, ExclusionRules, Members]
