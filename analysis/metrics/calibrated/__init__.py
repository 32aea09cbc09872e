"""Numbers of people, and beside them the numbers that the scores of judges make more precise. docs: explanation/judges-beside-people."""
