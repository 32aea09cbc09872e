"""Images come in a zip with their table, or not at all."""

import pytest

from studies.imports.tables import writing
from studies.models import Output
from tests.studies.imports.files import IMAGE_ROW, LONG, picture, sound, table, zipped


def test_a_zip_brings_images(study, put, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    rows = [
        {"prompt_key": "p1", "prompt_text": "A square", "system": "ada", "image": "img/a.png", "alt": "a red square"},
        {"prompt_key": "p1", "system": "bo", "image": "img/b.jpg"},
    ]
    data = zipped(
        {
            "t.csv": table(rows),
            "img/a.png": picture(),
            "img/b.jpg": picture("blue", kind="JPEG"),
            "img/c.png": picture("green"),
        }
    )
    report = sound(put(data, "images.zip", is_dry_run=True))
    assert not settings.MEDIA_ROOT.exists()
    assert [f.examples for f in report.findings if f.kind == "images_unused"] == [("img/c.png",)]
    sound(put(data, "images.zip", agreed=report.outcome()))
    outputs = Output.objects.filter(system__study=study)
    assert {o.alt for o in outputs} == {"a red square", ""} and len({o.media for o in outputs}) == 2
    assert sorted(path.name for path in settings.MEDIA_ROOT.glob("*/*")) == sorted(o.media for o in outputs)
    assert not sound(put(data, "images.zip")).has_changes


def files_below(root):
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_an_import_that_fails_leaves_no_image_but_those_of_others(study, put, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    assert put(zipped({"t.csv": table([IMAGE_ROW]), "a.png": picture()}), "i.zip").is_written
    (before,) = files_below(settings.MEDIA_ROOT)
    rows = [IMAGE_ROW | {"prompt_key": f"q{n}", "image": f"{n}.png"} for n in range(3)]
    data = zipped({"t.csv": table(rows)} | {"0.png": picture("blue"), "1.png": picture("green")} | {"2.png": picture()})
    seen = []

    def broken(*_):
        seen.extend(files_below(settings.MEDIA_ROOT))
        raise MemoryError

    with monkeypatch.context() as scarce:
        scarce.setattr(writing.StimuliWriter, "_store", broken)
        with pytest.raises(MemoryError):
            put(data, "j.zip")
    assert len(seen) == 3 and files_below(settings.MEDIA_ROOT) == [before]
    assert put(data, "j.zip").is_written and files_below(settings.MEDIA_ROOT) == sorted(seen)


def test_an_image_that_another_failed_import_removed_is_stored_again(study, put, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    store = writing.StimuliWriter._store

    def meanwhile(*given):
        store(*given)
        for path in settings.MEDIA_ROOT.glob("*/*"):
            path.unlink()

    monkeypatch.setattr(writing.StimuliWriter, "_store", meanwhile)
    assert put(zipped({"t.csv": table([IMAGE_ROW]), "a.png": picture()}), "i.zip").is_written
    assert files_below(settings.MEDIA_ROOT) == [Output.objects.get(system__study=study).media]


@pytest.mark.parametrize(
    ("image", "members", "said"),
    [
        ("b.png", {}, "not in the archive"),
        ("A.png", {}, "use this name in the table"),
        ("../x.png", {}, "not in the archive"),
        ("/etc/passwd", {}, "not in the archive"),
        ("CON", {}, "not in the archive"),
        ("a.png", {"a.png": b""}, "empty (0 bytes)"),
        ("a.png", {"a.png": b"<svg xmlns='x'/>"}, "SVG"),
        ("a.png", {"a.png": picture()[:40]}, "damaged"),
        ("a.png", {"a.png": b"text"}, "not an image"),
    ],
)
def test_a_bad_image_is_a_problem_of_its_row(study, put, image, members, said):
    data = zipped({"t.csv": table([IMAGE_ROW | {"image": image}]), "a.png": picture()} | members)
    report = put(data, "images.zip")
    assert report.problems.first[0].row == 2 and said in str(report.problems.first[0])
    assert not study.prompts.exists()


@pytest.mark.parametrize(
    "members",
    [
        {"../a.png": picture()},
        {"/a.png": picture()},
        {"a.png": picture(), "A.PNG": picture()},
        {"big.png": b"\0" * 30_000_000},
        {"second.csv": b"a\n1\n"},
        {"run.exe": b"MZ"},
    ],
)
def test_an_unsafe_archive_writes_nothing(study, put, members):
    report = put(zipped({"t.csv": table(LONG)} | members), "images.zip")
    assert report.problems and not study.prompts.exists()


@pytest.mark.parametrize(
    "image", [picture(kind="JPEG", mode="CMYK", colour=0), picture(kind="PNG", mode="I;16", colour=9)]
)
def test_odd_but_sound_images_are_taken(study, put, image, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    assert sound(put(zipped({"t.csv": table([IMAGE_ROW]), "a.png": image}), "i.zip")).is_written


def test_an_image_without_a_zip_is_refused(study, put):
    assert "import a zip" in str(put(table([IMAGE_ROW])).problems.first[0])
