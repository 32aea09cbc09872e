"""How moments and days are written, by language: Django looks here before it looks among its own."""
