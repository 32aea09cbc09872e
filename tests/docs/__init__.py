"""The documentation: every name of the code is in it, its samples run, its links lead somewhere, and it can be read by all."""
