"""The project: its settings, processes and commands."""

import gc

# A page or a report creates thousands of short-lived objects. Looking for cycles after every 700 would be a tenth of their work.
gc.set_threshold(10_000)
