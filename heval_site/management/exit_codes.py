"""The exit codes of all commands."""

# argparse uses 2 for wrong arguments, too.
YES, FAILED, WRONG_USE, NO, OPEN, TIMED_OUT = 0, 1, 2, 10, 11, 12
OF_VERDICT = {"yes": YES, "no": NO, "open": OPEN}
EXIT_CODES = "Exit code: 0 yes, 1 failed, 2 wrong use, 10 no, 11 open, 12 timed out."
MEANINGS = {
    YES: "yes, or done",
    FAILED: "It failed: the site refuses this in its present state, or cannot be reached. The message says why.",
    WRONG_USE: "Wrong use: an argument or a file is wrong. The message says what to correct.",
    NO: "no",
    OPEN: "open: neither is shown, or there is no result yet",
    TIMED_OUT: "The time to wait is over. Wait again later.",
}
