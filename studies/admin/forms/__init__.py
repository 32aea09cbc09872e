"""Forms of the researchers' pages: texts, scales, answers and settings are real fields, never raw JSON."""
