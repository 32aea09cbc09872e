"""Generate the texts of the demo study with word n-gram models that learn from fables, and measure how they differ."""
