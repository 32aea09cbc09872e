"""What people, programs and files may send: each case ends in words that name the field or row, or in what was meant.

What the tests beside each page and importer try already is not tried again.
"""
