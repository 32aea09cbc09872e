"""The texts of the demo study: word n-gram models that learn from fables, and how their texts differ."""
