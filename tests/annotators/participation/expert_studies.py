"""Studies in which one expert takes several parts."""

from annotators.recruitment.channels.generic import invitation_token
from tests.builders import add_rating, draft_study, launched, recruitment

PARTS = 3


def expert_study(*, parts=PARTS, target_n=6, days=14, **columns):
    study = draft_study(
        instructions="",
        systems=("alpha", "beta"),
        prompts=12,
        target_n=target_n,
        batches_per_annotator=parts,
        **columns,
    )
    study.arms.update(name="qqarmqq")
    add_rating(study, position=1, m=2)
    study = launched(study)
    door = recruitment(study, "invitation", settings={"people": 5, "days": days, "revoked": ""})
    return study, f"/e/{door.key}/?i={invitation_token(door.key, 1)}"
