"""The REST interface: each resource of a study, for programs. docs: reference/rest."""
