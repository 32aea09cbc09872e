"""Metrics that need a dictionary or a model: the file of texts, the script that people run on it, and the upload of its file."""

import json
import runpy
import sys
from types import ModuleType, SimpleNamespace

import nltk.corpus
import pytest
from django.conf import settings

from analysis.models import Metric
from studies.models import Output
from tests.admin_pages import logged_in
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db
SCRIPT = settings.DATA / "templates" / "scripts" / "other_metrics.py"
TEXTS = ("the big cat sat", "the huge cat sat")


class WordNet:
    """A dictionary in which big and huge are synonyms."""

    def synsets(self, word):
        lemmas = [SimpleNamespace(name=lambda name=name: name) for name in ("big", "huge")]
        return [SimpleNamespace(lemmas=lambda: lemmas)] if word in ("big", "huge") else []

    def get_version(self):
        return "3.0"


def module(monkeypatch, name, **functions):
    found = ModuleType(name)
    vars(found).update(functions)
    monkeypatch.setitem(sys.modules, name, found)


def n_common(pairs):
    return [len(set(text.split()) & set(reference.split())) / 4 for text, reference in pairs]


@pytest.fixture
def installed(monkeypatch):
    """Packages with the functions that the script calls, whose models count words in common. The METEOR is that of nltk."""
    monkeypatch.setattr(nltk.corpus, "wordnet", WordNet())

    def bert_score(texts, references, lang, return_hash):
        assert lang == "en" and return_hash
        best = [max(n_common([(text, one) for one in own])) for text, own in zip(texts, references, strict=True)]
        return (None, None, SimpleNamespace(tolist=lambda: best)), "roberta-large_L17"

    class Bleurt:
        def __init__(self, checkpoint):
            assert checkpoint == "BLEURT-20"

        def score(self, references, candidates):
            return n_common(zip(candidates, references, strict=True))

    def predict(rows, batch_size, gpus):
        assert {row["src"] for row in rows} and batch_size and gpus == 0
        return SimpleNamespace(scores=n_common([(row["mt"], row["ref"]) for row in rows]))

    module(monkeypatch, "bert_score", score=bert_score)
    module(monkeypatch, "bleurt")
    module(monkeypatch, "bleurt.score", BleurtScorer=Bleurt)
    model = SimpleNamespace(predict=predict)
    module(monkeypatch, "comet", download_model=lambda name: name, load_from_checkpoint=lambda path: model)
    versions = {"nltk": "3.10.4", "unbabel-comet": "2.2.7"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)


@pytest.fixture
def study():
    study = builders.rating_template(user("owner"), systems=("human", "good"), prompts=3)
    study.systems.filter(name="human").update(reference="reference")
    for output in Output.objects.filter(system__study=study).select_related("system", "prompt"):
        output.text = TEXTS[output.system.name == "good"]
        if output.system.name == "good" and output.prompt.key == "p000":
            output.text = "the huge cat"
        output.save(update_fields=["text"])
    return study


@pytest.mark.parametrize(
    ("metric", "score", "version"),
    [
        ("meteor", 1 - 0.5 / 4**3, "nltk 3.10.4, WordNet 3.0"),
        ("bertscore", 0.75, "roberta-large_L17"),
        ("bleurt", 0.75, "BLEURT-20"),
        ("comet", 0.75, "Unbabel/wmt22-comet-da, unbabel-comet 2.2.7"),
    ],
)
def test_the_file_of_the_script_is_taken_and_stands_beside_people(
    study, installed, monkeypatch, tmp_path, capsys, metric, score, version
):
    api = api_of(study.owner)
    address = f"studies/{study.code}/metrics/"
    lines = api.get(f"{address}texts.jsonl").body
    assert [json.loads(line)["system"] for line in lines.splitlines()] == ["good"] * 3
    assert {tuple(json.loads(line)["references"]) for line in lines.splitlines()} == {(TEXTS[0],)}
    (tmp_path / "texts.jsonl").write_bytes(lines)
    (tmp_path / "other_metrics.py").write_bytes(api.get(f"{address}other_metrics.py").body)
    assert (tmp_path / "other_metrics.py").read_bytes() == SCRIPT.read_bytes()
    source, target = str(tmp_path / "texts.jsonl"), str(tmp_path / "scores.csv")
    monkeypatch.setattr(sys, "argv", ["other_metrics.py", metric, source, target])
    runpy.run_path(str(tmp_path / "other_metrics.py"), run_name="__main__")
    assert capsys.readouterr().out == f"Version: {version}\n"
    client = logged_in(study.owner)
    with open(target, "rb") as file:
        sent = {"file": file, "kind": "metric", "version": version, "is_partial": "on"}
        answer = client.post(f"/admin/studies/study/{study.pk}/metrics/upload/", sent)
    assert answer.status_code == 302, answer.content.decode()
    stored = Metric.objects.get()
    assert (stored.name, stored.version, stored.n_scores) == (metric, version, 3)
    first, *others = stored.scores.order_by("output__prompt__key").values_list("value", flat=True)
    assert others == [pytest.approx(score)] * 2 and 0 < first < score
    page = client.get(f"/admin/studies/study/{study.pk}/metrics/").content.decode()
    assert metric in page and f"/api/v1/{address}texts.jsonl" in page


def test_without_its_synonyms_meteor_is_another_number(installed):
    from nltk.translate.meteor_score import meteor_score

    nothing = SimpleNamespace(synsets=lambda word: [])
    words = [text.split() for text in TEXTS]
    assert meteor_score(words[:1], words[1], wordnet=WordNet()) == pytest.approx(0.992, abs=5e-4)
    assert meteor_score(words[:1], words[1], wordnet=nothing) == pytest.approx(0.639, abs=5e-4)
