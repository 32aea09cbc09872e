"""The lines of coding explanations, of tokens for programs, and of the report's form."""

from datetime import timedelta

from django.urls import reverse
from django.utils import timezone

from analysis.coding import samples
from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.coding.samples import draw_coding_sample
from analysis.models import ApiToken
from annotators.models import Response
from studies.models import StudyMember
from tests import builders, players
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import bare, me, posted, said, says_refused, sends
from tests.messages.lines import only_informs
from tests.messages.pages.scenarios import launched


def colleague(study):
    carl = builders.user("carl")
    StudyMember.objects.get_or_create(study=study, user=carl, defaults={"role": "coder"})
    return carl


def drawn(make=bare, **changes):
    """What the page says on which a sample is drawn."""

    def scenario():
        study = make()
        whole = {
            "kind": "explanations", "per_arm": "2", "origin": "live", "rule": "union", "left_out": "Null",
            "codebook": "\n".join(EXPLANATIONS_CODEBOOK.as_lines()), "first": me().pk, "second": colleague(study).pk,
        }  # fmt: skip
        known = {name: me().pk if value == "me" else value for name, value in changes.items()}
        return posted(lambda: study, draw_url, **whole | known)()

    return scenario


def draw_url(study):
    return reverse("admin:analysis_codingsample_draw", args=[study.pk])


def explained():
    """A launched study, with somebody's explanation."""
    study = launched()
    done = players.submitted(study, "somebody")
    judged = done.responses.filter(item__isnull=False).first()
    item = judged.item if judged else study.items.first()
    Response.objects.create(
        assignment=done, question=study.sections.get().questions.first(), item=item, slot="why", text="It ends well."
    )
    return study


def sample():
    study = explained()
    return draw_coding_sample(
        study, kind="explanations", rule="union", codebook=EXPLANATIONS_CODEBOOK, per_arm=1,
        coders=[me(), colleague(study)], by=None,
    )  # fmt: skip


def item_url(one):
    return reverse("admin:analysis_codingsample_item", args=[one.pk, one.items.first().number])


def coded(**data):
    return posted(sample, item_url, **data)


def all_coded():
    one = sample()
    for item in one.items.all():
        samples.store_coding(item, me(), ["grammar"], False, 0)
    return said(logged_in(me()).get(reverse("admin:analysis_codingsample_code", args=[one.pk]), follow=True))


def stranger():
    study = explained()
    coders = [me(), builders.user("zoe")]
    draw_coding_sample(
        study, kind="explanations", rule="union", codebook=EXPLANATIONS_CODEBOOK, per_arm=1, coders=coders, by=None
    )


def token_revoked():
    token = ApiToken.objects.create(user=me(), name="mine", hash="0" * 64)
    return said(
        logged_in(me()).post(reverse("admin:analysis_apitoken_revoke", args=[token.pk]), {"post": "yes"}, follow=True)
    )


def token_expired():
    past = (timezone.now() - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    return sends(reverse("admin:analysis_apitoken_add"), "apitoken_form", name="mine", expires_at=past)


def codebook(text, **more):
    return drawn(codebook=text, left_out="", **more)


FORMS = {
    "This time is in the past": token_expired,
    "is revoked. Programs": only_informs(token_revoked),
    "Choose a third": drawn(rule="third"),
    "Line … is not a label": codebook("Form | grammar"),
    "Line …: the key “…” is not valid": codebook("Form | Bad key | A"),
    "Line …: the key “…” is used": codebook("Form | a | A\nForm | a | B"),
    "The codebook has no label. Write": codebook(" \n "),
    "The codebook has … labels": codebook("\n".join(f"Form | a{n} | A" for n in range(61))),
    "Categories that are not counted: no label": drawn(codebook="Form | a | A", left_out="Null"),
    "Categories that are not counted: every": drawn(codebook="Form | a | A", left_out="Form"),
    "A draft has no answers": drawn(),
    "This rule needs": drawn(launched, second="me"),
    "is not a coder": says_refused(stranger),
    "No submitted assignment": drawn(launched),
    "Sample … was drawn": only_informs(drawn(explained)),
    "You have coded": only_informs(all_coded),
    "The codebook has no label “…”. Reload": coded(label="nonsense"),
    "Choose either labels": coded(label="grammar", none="1"),
    "Choose at least one label": coded(seen="0"),
    "You coded this item": coded(label="grammar", seen="7"),
    "No origin is chosen": posted(
        explained, lambda study: f"/admin/studies/study/{study.pk}/analyses/run/", level="0.95", resamples="99"
    ),
    "The report with invented answers": only_informs(
        posted(launched, lambda s: reverse("new_study_invented", args=[s.pk]))
    ),
    "Enter numbers with commas": posted(
        lambda: builders.choice_study(by=me()),
        lambda study: f"/admin/studies/study/{study.pk}/analyses/run/",
        origins="live",
        level="0.95",
        resamples="99",
        deltas="a hundredth",
    ),
}
