"""The documentation: every name of the code stands in it, its samples run, its links lead somewhere, and it can be read by all."""
