"""What the statistics promise, measured under truths that are known. ``python -m tools.proofs.calibration`` writes the page."""
