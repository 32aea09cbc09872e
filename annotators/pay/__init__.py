"""Pay: what each way to end a visit is promised, what is owed to whom, and what became of it. Money is Decimal, never a float."""
