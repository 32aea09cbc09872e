"""The designs of which whole studies are simulated."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StudyCell:
    """A design, and how much people and prompts differ on the latent scale, whose noise has standard deviation 1.

    ``shift`` is the true mean preference for x. In SPA, ``prompts`` counts shared batches, and all three are points from 0 to 100.
    With ``has_margin`` the study plans a margin that the true difference just exceeds. With a ``hypothesis`` the true
    difference is exactly at the limit of that claim by a margin, so every such claim is false. With a ``group_size`` this many
    prompts in a row belong together, and ``sd_prompts`` is the spread of groups.
    """

    protocol: str
    people: int
    prompts: int
    sd_people: float = 0.3
    sd_prompts: float = 0.6
    shift: float = 0.0
    has_margin: bool = False
    estimand: str = ""
    hypothesis: str = "difference"
    is_lower_better: bool = False
    group_size: int = 0

    @property
    def name(self) -> str:
        """The design in words."""
        unit = "batches" if self.protocol == "spa" else "prompts"
        words = f"{self.protocol}{f' by {self.estimand}' if self.estimand else ''}, {self.people} people, {self.prompts} {unit}, sd {self.sd_people:g} and {self.sd_prompts:g}"
        words += f", in groups of {self.group_size}" if self.group_size else ""
        words += f", difference {self.shift:g}" if self.shift else ""
        words += ", lower is better" if self.is_lower_better else ""
        if self.hypothesis != "difference":
            return f"{words}, at the limit of {self.hypothesis.replace('_', ' ')}"
        return words + (", margin just below it" if self.has_margin else "")


CELLS = (
    StudyCell("rating", 20, 30),
    StudyCell("rating", 40, 10),
    StudyCell("two_choice", 20, 60, sd_prompts=1.2),
    StudyCell("two_choice", 20, 60, sd_people=0.0, sd_prompts=1.2),
    StudyCell("ranking", 20, 25),
    StudyCell("ranking", 40, 10),
    StudyCell("relative", 20, 25),
    StudyCell("relative", 40, 10),
    StudyCell("spa", 40, 10, sd_people=12.0, sd_prompts=8.0),
    StudyCell("marks", 20, 25, estimand="score"),
    StudyCell("marks", 20, 25, estimand="penalty"),
    StudyCell("marks", 40, 10, estimand="score"),
    StudyCell("humanlike", 20, 30),
    StudyCell("relative", 20, 25, sd_people=0.2, sd_prompts=0.3, shift=0.4, has_margin=True),
    StudyCell("two_choice", 20, 40, sd_people=0.2, sd_prompts=0.3, shift=0.4, has_margin=True),
    StudyCell("rating", 20, 30, sd_people=0.2, sd_prompts=0.3, shift=0.6, has_margin=True),
    StudyCell("relative", 40, 10, shift=0.1),
    StudyCell("two_choice", 20, 30, shift=0.1),
    StudyCell("two_choice", 20, 40, sd_people=0.2, sd_prompts=0.3, shift=-0.2, hypothesis="noninferiority"),
    StudyCell("relative", 20, 25, sd_people=0.2, sd_prompts=0.3, shift=0.4, hypothesis="superiority_by_margin"),
    StudyCell(
        "rating", 20, 30, sd_people=0.2, sd_prompts=0.3, shift=0.3, hypothesis="noninferiority", is_lower_better=True
    ),
    StudyCell(
        "rating",
        20,
        30,
        sd_people=0.2,
        sd_prompts=0.3,
        shift=-0.3,
        hypothesis="superiority_by_margin",
        is_lower_better=True,
    ),
)
