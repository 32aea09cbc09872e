"""The lines of what a table would write into the study."""

import io

from studies.imports.tables import plan
from tests.messages.importers.scenarios import GOOD, IMAGE, TABLES, bad, batches, brings, file, image_file
from tests.messages.lines import FILE, NOTHING, Shown
from tests.studies.imports.files import HEAD, long, table, wide, zipped
from tests.studies.stimuli.png import png_with_size

LINES = {
    f"{TABLES}:add": [
        ("ada occurs twice in this row", FILE, batches([wide("b", "p1", ada="a") | {"output:ada": "a"}]))
    ],
    f"{TABLES}:_prompt": [
        ("differs from row 2, which has the same prompt p1", FILE, bad("another prompt text")),
        (
            "“one” and “One” differ only in case",
            FILE,
            file("group," + HEAD + "One,p1,P,ada,a\none,p2,P,ada,b\n"),
        ),
    ],
    f"{TABLES}:_new_prompt": [
        ("“P1” and “p1” differ only in case", FILE, bad("keys alike in case")),
        ("the prompt p1 has no text here and no text in the study", FILE, file(HEAD + "p1,,ada,a\n")),
    ],
    f"{TABLES}:_output": [
        ("ada has more than 32,767 samples of one prompt", FILE, lambda: _many_samples()),
        (
            "ada on p1 is already in row 2, with the same text",
            "in a column “sample”",
            bad("same output twice"),
        ),
        (
            "ada on p1 is already in row 2, with another text",
            "in a column “sample”",
            bad("two outputs unnumbered"),
        ),
    ],
    f"{TABLES}:_system": [("the system “Ada” differs from “ada” only in case", FILE, bad("systems alike"))],
    f"{TABLES}:complete_report": [
        (
            "the study has no system “cy” (in 1 row)",
            "Add systems that the study does not have yet",
            file(HEAD + "p1,P,cy,a\n"),
        ),
        (
            "ada on p1 has other content in the study",
            "Replace content of the study",
            file(HEAD + "p1,Prompt p1,ada,New.\n", "t.csv", brings(GOOD)),
        ),
    ],
    f"{TABLES}:_add_findings": [
        ("Annotators may recognise the system by it", "Annotators may recognise", lambda: _surface()),
        (
            "Empty outputs: annotators see that the system produced no text. ada on p1 (row 2)",
            NOTHING,
            file(HEAD + "p1,P,ada,\n", allows_empty=True),
        ),
        (
            "Two systems gave the same output. ada on p1 = bo on p1 (row 3)",
            NOTHING,
            file(table([long("p1", "ada", "One."), long("p1", "bo", "One.")])),
        ),
        (
            "A system gave the same output to different prompts. ada on p1 = ada on p2",
            NOTHING,
            file(table([long("p1", "ada", "One."), long("p2", "ada", "One.")])),
        ),
        ("New prompts have no text: the file has no column for it", NOTHING, file("prompt_key,output:ada\np1,a\n")),
        (
            "Systems that will be added",
            "tick for each one whether it is a human author",
            file(HEAD + "p1,P,cy,a\n", creates_systems=True),
        ),
        ("Images in the archive that no row names; they are not imported. b.png", NOTHING, lambda: _unused_image()),
        ("Images that heval changed", NOTHING, lambda: _noted_image()),
    ],
}


def _many_samples():

    most, plan.MAX_NUMBER = plan.MAX_NUMBER, 0
    try:
        shown = file(HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,1\n")()
    finally:
        plan.MAX_NUMBER = most
    return [Shown(one.text.replace("more than 0 samples", "more than 32,767 samples")) for one in shown]


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
