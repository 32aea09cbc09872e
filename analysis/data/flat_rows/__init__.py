"""Answers and assignments are read as flat rows here, for exports, lists of the REST interface and the codebook.

Rows are read past Django's converters, one damaged cell would else stop a whole list; what cannot be read becomes empty and
``answers.find_damaged_cells`` names it.

A response's row is put together from three parts: what the assignment says (formatted once an assignment), what the page says
(once a page), and what the answer says (made by the database). So the cost of a row is that of its own cells.
"""
