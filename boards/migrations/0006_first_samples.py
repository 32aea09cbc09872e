"""Store the subsample of each board as its first version."""

from django.db import migrations
from django.db.models import OuterRef, Subquery


def store_first_samples(apps, schema_editor):
    board_model, sample_model = apps.get_model("boards", "Board"), apps.get_model("boards", "BoardSample")
    opened = board_model.objects.exclude(state="draft")
    sample_model.objects.bulk_create(
        sample_model(
            board=board, number=1, keys=board.sample_keys, seed=board.seed, by_id=board.owner_id, at=board.opened_at
        )
        for board in opened
    )
    of_board = sample_model.objects.filter(board=OuterRef("board")).values("pk")[:1]
    apps.get_model("boards", "BoardRound").objects.update(sample=Subquery(of_board))


class Migration(migrations.Migration):
    dependencies = [("boards", "0005_renewable_samples")]
    operations = [migrations.RunPython(store_first_samples, migrations.RunPython.noop)]
