"""What a system is measured against: the part that a reference plays, in the design and in the protocols that show pairs."""

from django.db.models import TextChoices


class Reference(TextChoices):
    ORDINARY = "reference", "reference"
    MAXIMAL = "maximal", "maximal reference"
    MINIMAL = "minimal", "minimal reference"


# The planted ends of a rating scale: no systems that anybody wants to know something about.
EXTREME_REFERENCES = (Reference.MAXIMAL, Reference.MINIMAL)
