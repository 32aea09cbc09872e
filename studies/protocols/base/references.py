"""Reference systems: their role in the design and in protocols that show pairs."""

from django.db.models import TextChoices


class Reference(TextChoices):
    ORDINARY = "reference", "reference"
    MAXIMAL = "maximal", "maximal reference"
    MINIMAL = "minimal", "minimal reference"
    TEST = "test", "only in test questions"


# The planted ends of a rating scale. They are not systems under evaluation.
EXTREME_REFERENCES = (Reference.MAXIMAL, Reference.MINIMAL)
