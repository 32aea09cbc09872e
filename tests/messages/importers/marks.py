"""The lines of error marks that were given elsewhere."""

from tests.messages.importers.answer_drafts import marks_draft
from tests.messages.importers.answers import answers


def marked(*rows):
    head = "annotator,question,prompt_key,system,value,choice,part,text\n"
    return answers(head + "".join(f"w,errors,p001,alpha,{row}\n" for row in rows), make=marks_draft)


IMPORTERS = {
    "also needs rows": answers("annotator,question,prompt_key,system,value\nw,score,p001,alpha,60\n", make=marks_draft),
    "must be empty: answers to “…” belong in the columns": marked("5,style,1,Clumsy"),
    "must be empty: the value": marked("0,style,,"),
    "marks nothing, but row": marked("0,,,", "0,,,"),
    "marks an output": marked("0,,,", "5,style,1,"),
    "is the same mark": marked("5,style,1,", "5,style,1,"),
    "is one mark": marked(
        *(f"5,{key},0," for key in ("accuracy", "fluency", "terms", "style", "coherence", "task", "other"))
    ),
    "must be the weight": marked("3,style,1,"),
    "must be an error": marked("5,spelling,1,"),
    "must be a sentence": marked("5,style,first,"),
    "must be at most …: the output": marked("5,style,99,"),
    "has characters, but 0": marked("5,style,0:1-2,"),
    "has characters outside": marked("5,style,1:0-999,"),
}
