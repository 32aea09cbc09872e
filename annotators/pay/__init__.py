"""Pay: the promised pay for each way to end a visit, the amounts due, and payments. Money is Decimal, never a float."""
