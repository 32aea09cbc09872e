"""What Prolific lets one refuse, and what it takes, as data with their source."""

from annotators.recruitment.panels import FAILED_CHECKS, NO_ANSWERS, OBSERVED, TOO_FAST, TOO_SLOW, RejectionPolicy

REJECTION_POLICY = RejectionPolicy(
    categories={
        "TOO_QUICKLY": "The whole study took more than three standard deviations less than the mean.",
        "TOO_SLOWLY": "It took far longer than the study needs, so that the answers cannot be used.",
        "FAILED_INSTRUCTIONS": "A clear instruction that was essential to the study was not followed.",
        "INCOMP_LONGITUDINAL": "A part of a study in several parts is missing; the listing said that all are needed.",
        "FAILED_CHECK": "Attention checks failed: one in a study of less than five minutes, else at least two.",
        "LOW_EFFORT": "Plain lack of effort that can be shown, such as letters at random where a paragraph was asked.",
        "MALINGERING": "The person lied about who they are, as the answers show.",
        "NO_CODE": "No code was entered, and no work was found either.",
        "BAD_CODE": "A code that is not of this study was entered, and no work was found.",
        "NO_DATA": "There are no answers of this person.",
        "UNSUPP_DEVICE": "A device was used that the listing ruled out.",
        "OTHER": "None of these; the message says what it is.",
    },
    min_message_length=100,
    evidence_by_category={
        "TOO_QUICKLY": (TOO_FAST,), "TOO_SLOWLY": (TOO_SLOW,), "FAILED_CHECK": (FAILED_CHECKS,), "NO_CODE": (NO_ANSWERS,), "BAD_CODE": (NO_ANSWERS,),
        "NO_DATA": (NO_ANSWERS,), "LOW_EFFORT": (OBSERVED,),
    },
    source=(
        "Prolific's own rules. A stored copy was read on 2026-11-22; they change, and theirs hold.", "https://prolific-researcher.dixa.help/en/article/f75ea9",
    ),
    rules=(
        "Ask for a return first, and wait at least five days.",
        "Never refuse pay for: failed comprehension questions, screening out, demographic questions left open, speed on one page, technical "
        "faults, a missing code alone.",
        "An attention check stands in the question itself, needs no memory and hides nothing in its type.",
        "Once refused it cannot be taken back through Prolific's service: write to Prolific.",
        "Left out of an analysis is not a reason.",
        "The categories are those of Prolific's command line tool, read on 2026-11-21.",
    ),
)  # fmt: skip

# Work that nobody decided on is approved by Prolific after so many days.
DECIDES_AFTER_DAYS = 21
