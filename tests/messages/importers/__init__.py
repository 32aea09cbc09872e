"""The lines of the importers: what is wrong with a file, and what is worth knowing of one.

Beside each problem the page names its row and column, and says once for all of them to correct the file and to upload it again; the test
of the page is beside this list.
"""

from tests.messages import attention_checks, known_answers
from tests.messages.importers import answers, batches, columns, files, marks, plan, preparation, writing
from tests.messages.lines import together

LINES = together(
    files.LINES,
    preparation.LINES,
    columns.LINES,
    plan.LINES,
    batches.LINES,
    writing.LINES,
    answers.LINES,
    marks.LINES,
    attention_checks.IMPORTERS,
    known_answers.IMPORTERS,
)
