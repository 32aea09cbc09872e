"""Pages without questions that no protocol of a section defines. Their visits record that they were read."""

from studies.protocols import Protocol


class InstructionsProtocol(Protocol):
    """The instructions page before the first text. It has no questions; its visit records that it was read."""

    slug = "instructions"
    has_items = False
    template = "annotate/instructions.html"

    def page_fields(self, page):
        return {}


INSTRUCTIONS = InstructionsProtocol()


class FeedbackProtocol(Protocol):
    """The feedback page after a practice page: the annotator's answer and the truth. It has no questions."""

    slug = "feedback"
    template = "annotate/feedback.html"

    def page_fields(self, page):
        return {}


FEEDBACK = FeedbackProtocol()


class SecondAttemptProtocol(Protocol):
    """The page between two attempts at a test. It has no questions and does not say which answers were wrong."""

    slug = "second_attempt"
    has_items = False
    template = "annotate/second_attempt.html"

    def page_fields(self, page):
        return {}


SECOND_ATTEMPT = SecondAttemptProtocol()
