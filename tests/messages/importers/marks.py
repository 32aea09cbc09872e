"""The lines of error marks that were given elsewhere."""

from tests.messages.importers.answer_drafts import marks_draft
from tests.messages.importers.answers import ANSWERS, answers


def marked(*rows):
    head = "annotator,question,prompt_key,system,value,choice,part,text\n"
    return answers(head + "".join(f"w,errors,p001,alpha,{row}\n" for row in rows), make=marks_draft)


LINES = {
    f"{ANSWERS}:_fill_section_pages": [
        (
            "“score” also needs rows of “errors” about this output",
            "Add them; 0 is no error",
            answers("annotator,question,prompt_key,system,value\nw,score,p001,alpha,60\n", make=marks_draft),
        ),
    ],
    f"{ANSWERS}:_place_mark": [
        (
            "answers to “errors” belong in the columns value, choice and part",
            "must be empty",
            marked("5,style,1,Clumsy"),
        ),
        ("must be empty: the value 0 marks nothing", "Remove it, or correct the value", marked("0,style,,")),
        ("0 marks nothing, but row 2 is about the same output", "Remove one of them", marked("0,,,", "0,,,")),
        ("marks an output in which row 2 marks nothing", "Remove one of them", marked("0,,,", "5,style,1,")),
        ("is the same mark as row 2", "Remove one of them", marked("5,style,1,", "5,style,1,")),
        (
            "“errors” takes 6 for an output",
            "Keep the worst ones",
            marked(*(f"5,{key},0," for key in ("accuracy", "fluency", "terms", "style", "coherence", "task", "other"))),
        ),
    ],
    "studies/protocols/marks:form_values_of_columns": [
        ("must be the weight of a severity level, 1 (minor), 5 (major)", "or 0 for no error", marked("3,style,1,")),
        ("must be an error category", "one of accuracy, fluency", marked("5,spelling,1,")),
        ("must be a sentence such as 2", "or 0 for none", marked("5,style,first,")),
        ("the output has no sentence 99", "must be at most", marked("5,style,99,")),
        ("has characters, but 0 is no sentence", "Name the sentence, or write 0", marked("5,style,0:1-2,")),
        ("has characters outside sentence 1", "Give a range within 0-", marked("5,style,1:0-999,")),
    ],
}
