"""Read answers and assignments as flat rows, for exports, lists of the REST API and the codebook.

Rows bypass Django's converters, because one damaged cell would otherwise stop a whole list. Unreadable cells become empty, and
``answers.find_damaged_cells`` lists them.

A response row has three parts: cells of the assignment, cells of the page, and cells of the answer. The first two are
formatted once per assignment and once per page. The database builds the cells of the answer. So each row costs only its
own cells.
"""
