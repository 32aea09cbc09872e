"""Read answers and assignments as flat rows, for exports, lists of the REST API and the codebook.

Rows bypass Django's converters, because one damaged cell would otherwise stop a whole list. Unreadable cells become empty, and
``answers.find_damaged_cells`` lists them.

A response row has three parts: cells of the assignment (formatted once per assignment), cells of the page (once per page), and
cells of the answer (built by the database). So each row costs only its own cells.
"""
