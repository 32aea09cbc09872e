"""Preparation is shown, done and undone, and always begins with the originals."""

import pytest

from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts, preview_preparation
from studies.models import AuditEvent, Output
from studies.services.lifecycle import ActionRefused
from studies.stimuli.normalising import Preparation
from tests.analysis.api.rest import api_of
from tests.builders import launched, spa_draft, user
from tests.studies.imports.files import LONG, contents, lines, long, sound, table, texts, wide

TOKENISED = [
    long("p1", "ada", "``So ;'' it went ( on )."),
    long("p1", "bo", "Plain. Twice."),
    long("p2", "ada", "Fine."),
    long("p2", "bo", "Fine too."),
]
SETTINGS = {"normalisation": {"tokeniser_quotes": True, "tokenised_spacing": True}}


def test_preparation_is_shown_then_done_and_undone(study, put):
    put(table(TOKENISED))
    report = preview_preparation(study, SETTINGS)
    assert (report.outputs, report.changed_outputs, report.by_step) == (
        4,
        1,
        {"tokeniser_quotes": 1, "tokenised_spacing": 1},
    )
    assert texts(study)["ada", "p1", 0] == TOKENISED[0]["text"] and report.examples[0].after == '"So;" it went (on).'
    prepare_stimuli_and_delete_dropped_prompts(study, SETTINGS, by=None)
    output = Output.objects.get(system__name="ada", prompt__key="p1")
    assert (output.text, output.original) == ('"So;" it went (on).', TOKENISED[0]["text"])
    study.refresh_from_db()
    assert study.preparation["normalisation"]["tokeniser_quotes"] is True
    event = AuditEvent.objects.filter(verb="prepare stimuli").get()
    assert event.data["outputs"] == 1 and event.data["settings"] == study.preparation
    assert (
        not prepare_stimuli_and_delete_dropped_prompts(study, SETTINGS, by=None).has_changes
        and AuditEvent.objects.filter(verb="prepare stimuli").count() == 1
    )
    prepare_stimuli_and_delete_dropped_prompts(study, {}, by=None)
    output.refresh_from_db()
    study.refresh_from_db()
    assert (output.text, output.original, study.preparation) == (TOKENISED[0]["text"], "", {})


def test_prompts_keep_their_original_too(study, put):
    put(table([long("p1", "ada", "(Laughing) he went.") | {"prompt_text": "[WP] A cat."}]))
    prepare_stimuli_and_delete_dropped_prompts(study, {"normalisation": {"leading_tag": True}}, by=None)
    prompt = study.prompts.get()
    assert (prompt.text, prompt.attributes) == ("A cat.", {"original_text": "[WP] A cat."})
    assert texts(study)["ada", "p1", 0] == "(Laughing) he went."  # a tag in front is a prompt's
    prepare_stimuli_and_delete_dropped_prompts(study, {}, by=None)
    prompt.refresh_from_db()
    assert (prompt.text, prompt.attributes) == ("[WP] A cat.", {})


def test_no_text_is_emptied_by_preparation(study, put):
    put(
        table(
            [long("p1", "ada", "A very long sentence without an end that nobody could cut"), long("p1", "bo", "Short.")]
        )
    )
    settings = {"length": {"manner": "longest_of_others", "trimmed": ["ada"]}}
    report = preview_preparation(study, settings)
    assert report.changed_outputs == 0 and "no sentence end" in report.warnings[0]


PRIMING = " ".join(f"word{n}" for n in range(100))


def copies_of(n_words):
    """A text of 100 words, the first of which are those of the priming text."""
    return " ".join([*PRIMING.split()[:n_words], *(f"own{n}" for n in range(100 - n_words))]).title()


def test_outputs_that_copy_a_priming_text_are_listed_and_left_out(study, put):
    """Section 2.2 of Clark et al. 2021: more than 80 % overlap, 9 texts of GPT2 and 2 of GPT3."""
    rows = [
        long(f"p{n:02}", system, copies_of(100 if n < n_copies else 80))
        for system, n_copies in (("gpt2", 9), ("gpt3", 2))
        for n in range(12)
    ]
    put(table(rows), creates_systems=True)
    # 76 of 96 runs of five words are copied, which is .79.
    settings = {"output_filters": [{"filter": "copies_at_most", "references": ["Another text.", PRIMING]}]}
    owner = user()
    study.members.create(user=owner, role="owner")
    api, path = api_of(owner), f"studies/{study.code}/preparation/"
    shown = api.post(path, {"settings": settings, "is_dry_run": True}).json()
    assert shown["dropped_outputs_by_system"] == {"gpt2": 9, "gpt3": 2} and not shown["is_written"]
    assert shown["dropped_outputs"][0] == {
        "key": "gpt2 on p00", "filter": "copies_at_most", "reason": "copies 100% of a reference text, more than 80%",
    }  # fmt: skip
    assert Output.objects.filter(system__study=study).count() == 24
    done = api.post(path, {"settings": settings}).json()
    assert done["is_written"] and done["dropped_outputs"] == shown["dropped_outputs"] and done["outputs"] == 13
    kept = Output.objects.filter(system__study=study)
    assert sorted(kept.values_list("system__name", flat=True)) == ["gpt2"] * 3 + ["gpt3"] * 10
    assert api.get(path).json()["preparation"]["output_filters"][0]["share"] == 0.8
    assert len(AuditEvent.objects.get(verb="prepare stimuli").data["dropped_outputs"]) == 11
    # A text that was generated again is prepared as it is imported, and one that copies again is left out again.
    put(table([long("p00", "gpt2", copies_of(50)), long("p01", "gpt2", copies_of(81 + 4))]))
    assert sorted(kept.filter(system__name="gpt2").values_list("prompt__key", flat=True)) == [
        "p00",
        "p09",
        "p10",
        "p11",
    ]
    refused = api.post(path, {"settings": {"output_filters": 3}})
    assert refused.status_code == 400 and "output_filters: must be a list" in refused.body.decode()


def test_designs_without_filters_of_outputs_keep_their_settings():
    assert set(Preparation.from_json(SETTINGS).as_json()) == {"prompt_filters", "normalisation", "length"}


def test_lengths_follow_those_that_are_read_together(spa, put):
    put(
        lines(
            [
                wide("r1", "p1", ada="One. Two. Three.", bo="Mmmmm."),
                wide("r2", "p1", ada="One. Two. Four.", bo="Mmmmmmmm mm."),
            ]
        ),
        "b.jsonl",
        makes_batches=True,
    )
    prepare_stimuli_and_delete_dropped_prompts(
        spa, {"length": {"manner": "longest_of_others", "trimmed": ["ada"]}}, by=None
    )
    assert contents(spa) == {"r1": [("p1", "One.", "Mmmmm.")], "r2": [("p1", "One. Two.", "Mmmmmmmm mm.")]}


def test_filters_leave_prompts_out_and_say_why(study, put):
    put(table([long("p1", "ada", "A") | {"prompt_text": "Why?"}, long("p2", "ada", "B")]))
    settings = {"prompt_filters": [{"filter": "has_no_question"}]}
    assert [each.key for each in preview_preparation(study, settings).dropped] == ["p1"] and study.prompts.count() == 2
    prepare_stimuli_and_delete_dropped_prompts(study, settings, by=None)
    assert list(study.prompts.values_list("key", flat=True)) == ["p2"] and Output.objects.count() == 1
    assert AuditEvent.objects.get(verb="prepare stimuli").data["dropped"] == [
        ["p1", "has_no_question", "has a question mark"]
    ]


def test_a_prompt_in_a_batch_is_not_filtered_away(spa, put):
    put(lines([wide("r1", "p1", ada="A", bo="B") | {"prompt_text": "Why?"}]), "b.jsonl", makes_batches=True)
    with pytest.raises(ActionRefused, match="p1"):
        prepare_stimuli_and_delete_dropped_prompts(spa, {"prompt_filters": [{"filter": "has_no_question"}]}, by=None)
    assert spa.prompts.exists()


def test_what_is_imported_later_is_prepared_as_declared(study, put):
    put(table(LONG))
    prepare_stimuli_and_delete_dropped_prompts(study, SETTINGS, by=None)
    study.refresh_from_db()
    report = sound(put(table([long("p9", "ada", "``Hm''")]), "later.csv"))
    assert texts(study)["ada", "p9", 0] == '"Hm"' and "prepared" in {f.kind for f in report.findings}
    # The file's text is compared with the original, not with what was made of it.
    assert not sound(put(table([long("p9", "ada", "``Hm''")]), "later.csv")).has_changes


def test_a_launched_study_is_not_prepared(db):
    study = launched(spa_draft(prompts=12))
    with pytest.raises(ActionRefused, match="only be prepared in a draft"):
        prepare_stimuli_and_delete_dropped_prompts(study, SETTINGS, by=None)
    study.refresh_from_db()
    assert study.preparation == {}
