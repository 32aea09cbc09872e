"""What Clark et al. 2021 print in Tables 1 and 2."""

PER_CELL, CELLS, TEXTS = 130, 3, 5
N_ANSWERS = PER_CELL * TEXTS
N = PER_CELL * CELLS
DOMAINS = ("Stories", "News", "Recipes")
# Accuracy, F1, precision, recall, % human, % confident.
TABLES = {
    ("Table 1", "GPT2"): (
        (0.62, 0.60, 0.64, 0.56, 55.23, 52.00),
        (0.57, 0.52, 0.60, 0.47, 60.46, 51.38),
        (0.55, 0.48, 0.59, 0.40, 65.08, 50.31),
    ),
    ("Table 1", "GPT3, None"): (
        (0.48, 0.40, 0.47, 0.36, 62.15, 47.69),
        (0.51, 0.44, 0.54, 0.37, 65.54, 52.46),
        (0.50, 0.41, 0.50, 0.34, 66.15, 50.62),
    ),
    ("Table 2", "Instructions"): (
        (0.50, 0.45, 0.49, 0.42, 57.69, 45.54),
        (0.56, 0.48, 0.55, 0.43, 62.77, 52.15),
        (0.50, 0.41, 0.52, 0.33, 67.69, 49.85),
    ),
    ("Table 2", "Examples"): (
        (0.57, 0.55, 0.58, 0.53, 53.69, 64.31),
        (0.53, 0.48, 0.52, 0.45, 58.00, 65.69),
        (0.56, 0.56, 0.61, 0.51, 55.23, 64.00),
    ),
    ("Table 2", "Comparison"): (
        (0.56, 0.56, 0.55, 0.57, 48.46, 56.62),
        (0.52, 0.51, 0.53, 0.48, 53.85, 50.31),
        (0.51, 0.49, 0.52, 0.46, 54.31, 53.54),
    ),
}
OVERALL = {"GPT2": 0.58, "GPT3, None": 0.50, "Instructions": 0.52, "Examples": 0.55, "Comparison": 0.53}


def around(printed: float) -> tuple[float, float, float]:
    return printed - 0.005, printed, printed + 0.005
