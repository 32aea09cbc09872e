"""The demo study: four programs and a human author continue the openings of fables."""
