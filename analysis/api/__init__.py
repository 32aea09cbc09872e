"""The REST API: the resources of a study, for programs. See the docs page reference/rest."""
