"""Prolific's rejection policy as data with its source."""

from annotators.recruitment.panels import FAILED_CHECKS, NO_ANSWERS, OBSERVED, TOO_FAST, TOO_SLOW, RejectionPolicy

REJECTION_POLICY = RejectionPolicy(
    categories={
        "TOO_QUICKLY": "The whole study took more than three standard deviations less than the mean.",
        "TOO_SLOWLY": "It took far longer than the study needs, so the answers cannot be used.",
        "FAILED_INSTRUCTIONS": "A clear and essential instruction of the study was not followed.",
        "INCOMP_LONGITUDINAL": ("A part of a multi-part study is missing, although the listing said that all "
                               "are needed."),
        "FAILED_CHECK": ("Attention checks failed: at least one in a study shorter than five minutes, otherwise "
                        "at least two."),
        "LOW_EFFORT": "Obvious lack of effort, for example random letters instead of a paragraph.",
        "MALINGERING": "The answers show that the person lied about who they are.",
        "NO_CODE": "No code was entered, and no work was found.",
        "BAD_CODE": "A wrong code was entered, and no work was found.",
        "NO_DATA": "There are no answers from this person.",
        "UNSUPP_DEVICE": "The person used a device that the listing excluded.",
        "OTHER": "None of these; the message states the reason.",
    },
    min_message_length=100,
    evidence_by_category={
        "TOO_QUICKLY": (TOO_FAST,), "TOO_SLOWLY": (TOO_SLOW,), "FAILED_CHECK": (FAILED_CHECKS,), "NO_CODE": (NO_ANSWERS,), "BAD_CODE": (NO_ANSWERS,),
        "NO_DATA": (NO_ANSWERS,), "LOW_EFFORT": (OBSERVED,),
    },
    source=(
        "Prolific's own rules. A stored copy was read on 2026-11-22. Rules change, and Prolific's current "
        "rules apply.", "https://prolific-researcher.dixa.help/en/article/f75ea9",
    ),
    rules=(
        "Ask for a return first, and wait at least five days.",
        "Never reject for: failed comprehension questions, screening out, unanswered demographic questions, "
        "speed on one page, technical faults, or only a missing code.",
        "An attention check must be in the question itself, need no memory and hide nothing in small print.",
        "Prolific's service cannot take back a rejection. To reverse one, write to Prolific.",
        "An exclusion from the analysis is not a reason.",
        "The categories are those of Prolific's command line tool, read on 2026-11-21.",
    ),
)  # fmt: skip

# Prolific approves undecided work after this number of days.
DECIDES_AFTER_DAYS = 21
