"""A page that was sent although an image on it could not be seen says which image that was."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0012_the_id_of_a_person_is_kept_enciphered_alone"),
    ]

    operations = [
        migrations.AddField(
            model_name="pagevisit",
            name="unseen",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddConstraint(
            model_name="pagevisit",
            constraint=models.CheckConstraint(
                condition=models.Q(("unseen", ""), ("recorded_at__isnull", False), _connector="OR"),
                name="page_names_unseen_images_only_when_recorded",
            ),
        ),
    ]
