"""Is this judge good enough? The site draws outputs, people judge them without seeing the judge's verdicts, and a job compares both."""
