"""The page of a study's metrics and judges: it shows what was stored, takes files, and starts jobs."""
