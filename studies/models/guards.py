"""Two guards: append-only rows, and a design that does not change after the launch of its study.

The guards are in the managers, so that they also work in a shell or a careless view. PostgreSQL has triggers in
addition. The last check is the design's hash, which every analysis computes again.
"""

from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from django.db import connection, migrations, models, transaction
from django.db.models.signals import m2m_changed

if TYPE_CHECKING:
    from .study import Study


# PostgreSQL triggers, for migrations. SQLite has only the managers' guards, because Django's flush must delete rows
# there.


APPEND_ONLY_SQL = """
CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  {passes}
  RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION {table}_append_only();
"""

# {old}, {new}: the expression that finds the study of the old or new row.
FROZEN_DESIGN_SQL = """
CREATE FUNCTION {table}_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  state text;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    SELECT s.state INTO state FROM studies_study s WHERE s.id = ({old});
    IF state IS NOT NULL AND state <> 'draft' AND current_setting('heval.amending', true) IS DISTINCT FROM 'on' {changes} THEN
      RAISE EXCEPTION 'a launched study''s {table} does not change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    SELECT s.state INTO state FROM studies_study s WHERE s.id = ({new});
    IF state IS NOT NULL AND state <> 'draft' AND current_setting('heval.amending', true) IS DISTINCT FROM 'on' {changes} {grows} THEN
      RAISE EXCEPTION 'a launched study''s {table} does not change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER {table}_frozen BEFORE INSERT OR UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION {table}_frozen();
"""


class _OnPostgreSQL(migrations.RunSQL):
    """SQL that PostgreSQL alone runs. RunPython would first build all models of the site for it, on every database."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def only_on_postgresql(sql: str, reverse_sql: str) -> migrations.RunSQL:
    """Return a migration operation that SQLite skips."""
    return _OnPostgreSQL(sql, reverse_sql)


def append_only_operation(table, exception_sql="") -> migrations.RunSQL:
    """Return a migration operation that forbids UPDATE and DELETE on ``table``. The PL/pgSQL ``exception_sql`` may allow some."""
    return _OnPostgreSQL(
        APPEND_ONLY_SQL.format(table=table, passes=exception_sql),
        f"DROP TRIGGER {table}_append_only ON {table}; DROP FUNCTION {table}_append_only();",
    )


def frozen_design_operation(
    table, study_sql="{row}.study_id", mutable_columns=(), allows_inserts=False
) -> migrations.RunSQL:
    """Return a migration operation that freezes the rows of a study that is not a draft.

    ``mutable_columns``: columns that may still change. ``allows_inserts``: rows may still be added.
    """
    free = ""
    if mutable_columns:
        columns = "{" + ",".join(mutable_columns) + "}"
        free = (
            f"AND NOT (TG_OP = 'UPDATE' AND to_jsonb(NEW) - '{columns}'::text[] = to_jsonb(OLD) - '{columns}'::text[])"
        )
    sql = FROZEN_DESIGN_SQL.format(
        table=table,
        old=study_sql.format(row="OLD"),
        new=study_sql.format(row="NEW"),
        changes=free,
        grows="AND TG_OP <> 'INSERT'" if allows_inserts else "",
    )
    return _OnPostgreSQL(sql, f"DROP TRIGGER {table}_frozen ON {table}; DROP FUNCTION {table}_frozen();")


# The models of the querysets below, whose columns and guards those ask.
_AppendOnly = TypeVar("_AppendOnly", bound="AppendOnlyModel", covariant=True)
_Design = TypeVar("_Design", bound="DesignModel | Study", covariant=True)
_Row = TypeVar("_Row", covariant=True)


class AppendOnlyViolation(Exception):
    """A row of the record would be changed or deleted, which is never allowed."""


class StudyFrozen(Exception):
    """The design of a launched study would change. Clone the study, or amend a field that may be amended."""


_erasing: ContextVar[bool] = ContextVar("erasing", default=False)


_amending: ContextVar[bool] = ContextVar("amending", default=False)


def _set_trigger_setting(name, value):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config(%s, %s, true)", [f"heval.{name}", value])


@contextmanager
def _lift_guard(name, flag):
    with transaction.atomic():
        token = flag.set(True)
        try:
            _set_trigger_setting(name, "on")
            yield
            _set_trigger_setting(name, "")
        finally:
            flag.reset(token)


def allowing_erasure() -> AbstractContextManager[None]:
    """Return a transaction that may only blank recorded answers (withdrawal) or delete the answers of a test run."""
    return _lift_guard("erasing", _erasing)


def allowing_amendment() -> AbstractContextManager[None]:
    """Return the transaction of ``lifecycle.amend``, in which the amendable columns pass the guard."""
    return _lift_guard("amending", _amending)


class AppendOnlyQuerySet(models.QuerySet[_AppendOnly, _Row]):
    def update(self, **kwargs):
        if not (_erasing.get() and set(kwargs) <= self.model.erasable_fields):
            raise AppendOnlyViolation(self.model.__name__)
        return super().update(**kwargs)

    def delete(self):
        if not (_erasing.get() and self.model.erasable_fields):
            raise AppendOnlyViolation(self.model.__name__)
        return super().delete()

    def _raw_delete(self, using):
        if not (_erasing.get() and self.model.erasable_fields):
            raise AppendOnlyViolation(self.model.__name__)
        return super()._raw_delete(using)

    def bulk_create(self, objs, *args, **kwargs):
        if kwargs.get("update_conflicts"):
            raise AppendOnlyViolation(self.model.__name__)
        return super().bulk_create(objs, *args, **kwargs)


class AppendOnlyModel(models.Model):
    # The columns that an erasure may blank. The trigger checks that nothing else changes.
    erasable_fields: frozenset[str] = frozenset()
    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(self, *args, **kwargs):
        if not self._state.adding:
            raise AppendOnlyViolation(type(self).__name__)
        kwargs["force_insert"] = True  # otherwise Model(pk=old).save() would be an UPDATE
        super().save(*args, **kwargs)

    def delete(self, *args, **kwargs):
        raise AppendOnlyViolation(type(self).__name__)


class DesignQuerySet(models.QuerySet[_Design, _Row]):
    def refuse_if_frozen(self):
        ids = self.order_by().values("pk")
        frozen = self.model._base_manager.filter(pk__in=ids).exclude(**{f"{self.model.study_path}__state": "draft"})
        if frozen.exists():
            raise StudyFrozen(self.model.__name__)

    def update(self, **kwargs):
        if not self.model.may_change(kwargs):
            self.refuse_if_frozen()
            self._refuse_move_into_frozen(kwargs)
        return super().update(**kwargs)

    def _refuse_move_into_frozen(self, kwargs):
        first, _, rest = self.model.study_path.partition("__")
        moved_to = kwargs.get(first, kwargs.get(f"{first}_id"))
        related = self.model._meta.get_field(first).related_model if first != "pk" else None
        if moved_to is None or related is None:
            return
        path = f"{rest}__state" if rest else "state"
        if related._base_manager.filter(pk=getattr(moved_to, "pk", moved_to)).exclude(**{path: "draft"}).exists():
            raise StudyFrozen(self.model.__name__)

    def delete(self):
        self.refuse_if_frozen()
        return super().delete()

    def bulk_create(self, objs, *args, **kwargs):
        objs = list(objs)
        if not self.model.may_add_after_launch or kwargs.get("update_conflicts"):
            refuse_if_studies_frozen(objs)
        return super().bulk_create(objs, *args, **kwargs)

    def bulk_update(self, objs, fields, *args, **kwargs):
        objs = list(objs)
        if not self.model.may_change(fields):
            self.model.objects.filter(pk__in=[obj.pk for obj in objs]).refuse_if_frozen()
            refuse_if_studies_frozen(objs)
        return super().bulk_update(objs, fields, *args, **kwargs)


def refuse_if_studies_frozen(rows) -> None:
    """Raise StudyFrozen if a study of these rows is launched. One query for all studies."""
    if not rows:
        return
    model = type(rows[0])
    first, _, rest = model.study_path.partition("__")
    related = model._meta.get_field(first).related_model
    ids = {getattr(obj, f"{first}_id") for obj in rows}
    path = f"{rest}__state" if rest else "state"
    if related._base_manager.filter(pk__in=ids).exclude(**{path: "draft"}).exists():
        raise StudyFrozen(model.__name__)


class DesignModel(models.Model):
    """A row of a study's design: editable in a draft, then frozen.

    ``may_add_after_launch``: rows may be added later (drawn batches), but never changed. ``mutable_fields``: columns that
    count events and may change. ``amendable_fields``: columns that ``lifecycle.amend`` may change, with a reason, in a new
    version of the design.
    """

    study_path = "study"
    may_add_after_launch = False
    mutable_fields: frozenset[str] = frozenset()
    amendable_fields: frozenset[str] = frozenset()
    objects = DesignQuerySet.as_manager()

    class Meta:
        abstract = True
        base_manager_name = "objects"

    @classmethod
    def may_change(cls, columns) -> bool:
        allowed = cls.mutable_fields | (cls.amendable_fields if _amending.get() else frozenset())
        return set(columns) <= allowed

    def refuse_if_frozen(self):
        refuse_if_studies_frozen([self])
        if self.pk:  # moving a row out of a launched study is a change too
            type(self).objects.filter(pk=self.pk).refuse_if_frozen()

    def save(self, *args, **kwargs):
        if self._state.adding and self.may_add_after_launch:
            kwargs["force_insert"] = True
        elif self._state.adding or not (kwargs.get("update_fields") and self.may_change(kwargs["update_fields"])):
            self.refuse_if_frozen()
        super().save(*args, **kwargs)

    def delete(self, *args, **kwargs):
        self.refuse_if_frozen()
        return super().delete(*args, **kwargs)


def refuse_frozen_m2m_change(sender, instance, action, reverse, model, pk_set, **kwargs) -> None:
    """Guard ``add``, ``remove``, ``clear`` and ``set`` of many-to-many fields, which do not call ``save``."""
    if not action.startswith("pre_"):
        return
    if isinstance(instance, DesignModel):
        instance.refuse_if_frozen()
    if reverse and pk_set and issubclass(model, DesignModel):
        model._base_manager.filter(pk__in=pk_set).refuse_if_frozen()


def connect_m2m_guards(*through_models) -> None:
    for model in through_models:
        m2m_changed.connect(refuse_frozen_m2m_change, sender=model, dispatch_uid=f"frozen {model._meta.label}")
