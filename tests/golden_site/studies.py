"""One study for every way to a number: all protocols, and what leads the analyses along other paths."""

from . import imported, paper, protocols, two_choices

STUDIES = (
    paper.spoiled_paper, protocols.every_protocol, protocols.human_or_machine, protocols.utilities, protocols.parts_of_the_scale,
    protocols.one_order, protocols.exposures, protocols.criteria, two_choices.stops_itself, two_choices.first_crossing,
    two_choices.majority, two_choices.max_three, protocols.amended_everything, protocols.amended_human_or_machine,
    protocols.ratings_apart, protocols.marks_apart, protocols.one_output_at_a_time, imported.imported, paper.nobody, paper.one_person,
    paper.two_people, paper.all_left_out, paper.collecting, paper.unblinded, paper.all_alike, protocols.everything_from_nobody,
    protocols.everything_from_one, two_choices.replayed, paper.robots,
)  # fmt: skip
