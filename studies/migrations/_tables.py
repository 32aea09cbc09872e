"""Short forms for the first migrations, which make some eighty tables. Later migrations are written as Django writes them."""

from django.db import migrations, models


def table(name: str, options: dict | None = None, /, **fields: models.Field) -> migrations.CreateModel:
    """A table with the usual key and these columns, in this order."""
    key = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")
    return migrations.CreateModel(name, [("id", key), *fields.items()], options)


def link(to: str, related_name: str = "+", **options) -> models.ForeignKey:
    """A foreign key: what it points to is not deleted."""
    return models.ForeignKey(to, on_delete=models.PROTECT, related_name=related_name, **options)


def optional_link(to: str, related_name: str = "+", **options) -> models.ForeignKey:
    return link(to, related_name, null=True, blank=True, **options)


def moment() -> models.DateTimeField:
    return models.DateTimeField(null=True, blank=True, editable=False)
