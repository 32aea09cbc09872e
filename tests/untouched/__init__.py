"""What nobody changed stays as it is: every form is sent back as a browser shows it, twice, and no row of the database changes.

Forms, rows and values are enumerated: the admin's registry, the addresses of the site, the registries of protocols, rules and channels,
the columns of the models and the choices of each settings form. A new member of one of them is covered without an edit here.
"""
