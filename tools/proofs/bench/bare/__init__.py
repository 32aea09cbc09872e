"""The least that Django can do for an annotator's cycle: no middleware, one SELECT, one template, one INSERT."""
