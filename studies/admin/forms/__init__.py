"""Forms of the researchers' pages. Texts, scales, answers and settings are real fields, never raw JSON."""
