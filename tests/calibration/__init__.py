"""What the statistics promise, measured under truths that are known. ``python -m tests.calibration`` writes the page."""
