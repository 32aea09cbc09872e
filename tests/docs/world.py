"""A site in which everything is there that the documentation names. Each page has a method with what it needs beside that."""

import json
from hashlib import sha256
from pathlib import Path

from django.db.models import F

from analysis.metrics.judge_check.measuring import draw_check
from analysis.report.runs import run_analysis
from annotators.models import Recruitment
from boards.models import Submission
from boards.services import snapshots
from studies.models import Contrast, Study
from studies.services import lifecycle
from tests.analysis.metrics.judge_check.builders import chosen, judged_draft, store_judge
from tests.boards import builders as boards
from tests.builders import add_choice, draft_study, launched, recruitment, user
from tests.docs.samples import as_lines, write_samples
from tests.in_process import person_choosing
from tests.studies.imports.tools import INSPECT

PEOPLE = 4


class World:
    def __init__(self, folder: Path):
        self.folder = folder
        self.ada = user("ada", is_superuser=True)
        write_samples(folder)
        self.study, self.earlier = (self.closed_study(f"Checkpoint {n}") for n in (40, 39))
        self.board = boards.open_board(self.ada)
        self.team, self.key = boards.team_of(self.board)

    def closed_study(self, title: str) -> Study:
        study = launched(self.draft(title), self.ada)
        for n in range(PEOPLE):
            person_choosing(study, n, "new", study.recruitments.get())
        study.refresh_from_db()
        lifecycle.start_closing(study, by=self.ada)
        lifecycle.end_grace_period(study, by=None)
        run_analysis(study, {"resamples": 99}, by=self.ada)
        return study

    def draft(self, title: str = "A draft", channel: str = "open_link") -> Study:
        """A study that asks whether new beats old, with a link."""
        study = draft_study(
            systems=("new", "old"), prompts=16, target_n=PEOPLE, owner=self.ada, title=title, instructions=""
        )
        add_choice(study, m=4)
        Contrast.objects.filter(study=study).update(x=F("y"), y=F("x"))
        recruitment(study, channel)
        return study

    def write(self, name: str, content: str | bytes) -> None:
        (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def variables(self, page: str) -> dict[str, str]:
        """Return the variables that the blocks of a page read, after the files are written that they need."""
        prepare = getattr(self, page.rpartition("/")[2].replace("-", "_"), lambda: None)
        study, more = prepare() or (self.study, {})
        link = Recruitment.objects.filter(study=study).first() or recruitment(study)
        return {"STUDY": str(study.code), "EARLIER": str(self.earlier.code), "LINK": link.key} | more

    def amend_a_study(self):
        self.write("changes.json", json.dumps({"study": {"contact": "new@example.org"}}))
        return launched(self.draft("Checkpoint 41"), self.ada), {}

    def check_a_judge(self):
        study = judged_draft(self.ada)
        draw_check(study, self.ada, chosen(study, store_judge(study)))
        return study, {}

    def compare_metrics_with_people(self):
        rows = [f"{key},{name},0.{n}" for n, key in enumerate(self.keys) for name in ("new", "old")]
        self.write("scores.csv", "\n".join(["Nr,Wer,BLEU", *rows]))

    @property
    def keys(self) -> list[str]:
        return list(self.study.prompts.order_by("key").values_list("key", flat=True))

    def import_answers(self):
        rows = [f"w{person},{key},new,old,new" for person in range(3) for key in self.keys]
        self.write("answers.csv", "\n".join(["worker,pair_id,shown:A,shown:B,chosen", *rows]))
        return self.draft(), {}

    def import_outputs(self):
        table = "prompt_key,prompt_text,system,text\nq1,Why?,new,Because.\nq1,Why?,old,So.\n"
        self.write("stimuli.zip", boards.zipped({"stimuli.csv": table.encode()}))
        return self.draft(), {}

    def rehearse_a_study(self):
        return self.draft(), {}

    def settle_with_a_panel(self):
        self.write(
            "export.csv", "Submission id,Participant id,Status\n" + f"{'66f0' * 6},{'5f1a' * 6},AWAITING REVIEW\n"
        )
        return self.draft(channel="prolific"), {}

    def read_and_share_a_leaderboard(self):
        result = {"rows": [1, 2]}
        text = json.dumps(result, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.write("stories-7.json", json.dumps({"result": result, "result_sha256": sha256(text.encode()).hexdigest()}))
        return self.study, {"NONCE": "n", "SEED": "7"}

    def submit_a_system_to_a_board(self):
        self.write("outputs.jsonl", boards.outputs_file(self.board))
        pictures = boards.open_image_board(self.ada, slug="pictures")
        self.write("outputs.zip", boards.images_zip(pictures))
        return self.study, {"HEVAL_TOKEN": self.key, "PICTURES_KEY": boards.team_of(pictures)[1]}

    def test_each_night_whether_a_system_got_worse(self):
        """Last night's outputs are scored beside those in production, so the command finds its submission and its score."""
        night = "nightly 2026-11-27"
        self.write("outputs.jsonl", boards.outputs_file(self.board, night))
        for name in ("production", night):
            boards.submit(self.board, self.team, name)
        names = Submission.objects.filter(board=self.board).values_list("name", flat=True)
        boards.play_round(self.board, dict.fromkeys(names, 1.0) | {"human": 1.5})
        snapshots.take_snapshot(self.board, self.ada)
        return self.study, {"HEVAL_TOKEN": self.key}

    def score_a_log_with_people(self):
        samples = [INSPECT["samples"][0] | {"id": n, "input": f"Question {n}?", "epoch": 1} for n in range(8)]
        self.write("log.json", json.dumps(INSPECT | {"samples": samples}))
        for name in ("new", "old"):
            rows = [
                {"doc_id": n, "target": "4", "arguments": [[f"Q: {n}?", {}]], "resps": [[f"The {name} answer {n}."]]}
                for n in range(20)
            ]
            self.write(f"samples_{name}.jsonl", as_lines(rows))
