"""Back up a whole site into one file, and make a site of such a file again, on either database."""
