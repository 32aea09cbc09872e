"""One module for each exclusion rule (or two that share their settings). Every module here is imported when the site starts."""
