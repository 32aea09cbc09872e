"""The pages for annotators.

They need no cookie, no session and no script: the code in the address is the credential.
"""
