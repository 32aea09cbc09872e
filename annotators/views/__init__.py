"""Annotators' pages: no cookie, no session, no script needed. The code in the address is the credential."""
