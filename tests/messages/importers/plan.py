"""The lines of what a table would write into the study."""

import io
from dataclasses import replace

from studies.imports.tables import plan
from tests.messages.importers.scenarios import GOOD, IMAGE, bad, batches, brings, file, image_file
from tests.messages.lines import only_informs
from tests.studies.imports.files import HEAD, long, table, wide, zipped
from tests.studies.stimuli.png import png_with_size

IMPORTERS = {
    "occurs twice in this row": batches([wide("b", "p1", ada="a") | {"output:ada": "a"}]),
    "differs from row …, which has the same": bad("another prompt text"),
    "studies/imports/tables:_prompt: “…” and “…” differ": file("group," + HEAD + "One,p1,P,ada,a\none,p2,P,ada,b\n"),
    "_new_prompt: “…” and “…” differ": bad("keys alike in case"),
    "the prompt … has no text": file(HEAD + "p1,,ada,a\np2,P,ada,b\n"),
    "has more than … samples": lambda: _many_samples(),
    "on … is already in row …, with the same": bad("same output twice"),
    "on … is already in row …, with another text": bad("two outputs unnumbered"),
    "the system “…” differs": bad("systems alike"),
    "the study has no system “…” (in": file(HEAD + "p1,P,cy,a\n"),
    "has other content": file(HEAD + "p1,Prompt p1,ada,New.\n", "t.csv", brings(GOOD)),
    "Annotators may recognise": only_informs(lambda: _surface()),
    "Empty outputs: annotators": file(HEAD + "p1,P,ada,\n", allows_empty=True),
    "Keys of prompts": only_informs(file(HEAD + "1.2E+18,P,ada,a\n")),
    "Outputs are words": only_informs(file(HEAD + "p1,P,ada,nan\n")),
    "Outputs read like": file(HEAD + 'p1,P,ada,"I am sorry, but I cannot help with that."\n'.replace("I am", "I'm")),
    "Texts contain …. Remove": file(HEAD + "p1,P,ada,Write to ann@uni.edu now.\n"),
    "Prompts have the same": file(HEAD + "p1,P,ada,One.\np2,P,ada,Two.\n"),
    "Half of the outputs": file(
        HEAD + "".join(f"p{n},P {n},ada,{'a ' * (900 if n == 7 else 20)}\n" for n in range(30))
    ),
    "Two systems gave": only_informs(file(table([long("p1", "ada", "One."), long("p1", "bo", "One.")]))),
    "A system gave": only_informs(file(table([long("p1", "ada", "One."), long("p2", "ada", "One.")]))),
    "New prompts have no text": only_informs(file("prompt_key,output:ada\np1,a\n")),
    "Systems that will": file(HEAD + "p1,P,cy,a\n", creates_systems=True),
    "Images in the archive": only_informs(lambda: _unused_image()),
    "Images that heval": only_informs(lambda: _noted_image()),
}


def _many_samples():

    most, plan.MAX_NUMBER = plan.MAX_NUMBER, 0
    try:
        shown = file(HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,1\n")()
    finally:
        plan.MAX_NUMBER = most
    return [replace(one, text=one.text.replace("more than 0 samples", "more than 32,767 samples")) for one in shown]


def _surface():
    rows = [long(f"p{n}", "ada", f"**Bold** {n}.") for n in range(30)] + [
        long(f"p{n}", "bo", f"Plain {n}.") for n in range(30)
    ]
    return file(table(rows))()


def _unused_image():
    return file(image_file(**{"b.png": png_with_size(8, 8)}), "t.zip")()


def _noted_image():
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGBA", (40, 40), (255, 0, 0, 90)).save(out, "PNG")
    return file(zipped({"t.csv": table(IMAGE), "img/a.png": out.getvalue()}), "t.zip")()
