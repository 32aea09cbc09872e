"""Date and time formats by language. Django looks here before its own formats."""
