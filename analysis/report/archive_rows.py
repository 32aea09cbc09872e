"""The rows of a study in its archive: all that an analysis reads, written and read again.

``rows/manifest.json`` names the format and the columns of each table, and ``rows/APP.MODEL.jsonl`` has a list of values for each
row. Rows refer to each other by the ids that they had. No id of a panel, no code of an assignment, no user and no secret is among
them. A person is a pseudonym, and one who withdrew is only the place that they held.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any
from uuid import UUID, uuid4
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DatabaseError, models, transaction
from django.db.models import DecimalField, FloatField, QuerySet
from django.db.models.functions import Cast

from analysis.coding.models import Coding, CodingItem, CodingSample, CodingSeat
from analysis.data.flat_rows import (
    annotator_pseudonym,
    archived_annotator_code,
    archived_assignment_code,
    assignment_pseudonym,
)
from analysis.models import Metric, MetricScore
from annotators.counting import Use, select
from annotators.models import (
    Annotator,
    Assignment,
    Exclusion,
    PageVisit,
    Payment,
    Recruitment,
    Response,
    SampleColumn,
    SampleValue,
)
from annotators.models.identity import keyed_hash
from studies import access
from studies.access import Action
from studies.imports.bundle import ValueRefused, check_json_is_storable, json_to_column_value
from studies.language.catalogues import CatalogueRefused, check_words, shipped_language_for, version_of
from studies.models import (
    Arm,
    ArmSystem,
    Batch,
    ComparisonFamily,
    Contrast,
    Design,
    ExclusionRule,
    Expected,
    Exposure,
    Item,
    Job,
    Output,
    Placement,
    Prompt,
    Qualification,
    Question,
    Section,
    SectionArm,
    SizePlan,
    Study,
    System,
    Translation,
)
from studies.models.audit import AuditEvent
from studies.models.fields import parse_groupings
from studies.protocols.base.fields import parse_scale
from studies.services import translations
from studies.services.lifecycle import set_archived_state
from studies.stimuli import texts

from .build import version_and_source_hash

FORMAT = "heval.archive/1"
MANIFEST = "rows/manifest.json"
ROWS_AT_ONCE = 500
MAX_LINE = 64 * 1024 * 1024
MAX_UNPACKED = 8 * 1024**3
ARCHIVE_POOL = "archive"
WITHDRAWN = "withdrawn-"
IMPORTED = "import archive"
ANOTHER_ARCHIVE = "Download the archive again."
NO_TEXTS = (
    "The archive has hashes in place of prompts and outputs, because they may not be passed on. Their lengths and the hash of the design "
    "cannot be computed from it. Use the site of the study."
)
User = get_user_model()


class ArchiveRefused(Exception):
    """The archive cannot be read. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """A table in the archive. ``path``: from a row to its study, and ``person``: to its assignment, if it is about one.

    ``columns``: only these; empty means all that refer to no user and to no table outside of the archive.
    """

    model: type[models.Model]
    path: str = "study"
    person: str | None = None
    columns: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.model._meta.label_lower

    @property
    def file(self) -> str:
        return f"rows/{self.label}.jsonl"

    @property
    def fields(self) -> list[models.Field]:
        known = {part.model for part in PARTS} | set(NAMED_BY)
        return [
            field
            for field in self.model._meta.local_concrete_fields
            if field.name not in self.without
            and (field.name in self.columns or field.primary_key or not self.columns)
            and (field.related_model in known or not field.is_relation)
            and not (field.related_model is User and self.model not in (CodingSeat, Coding))
        ]


# People and coders have no rows: others name them.
NAMED_BY = (Annotator, User)
# In the order in which they refer to each other.
PARTS = (
    Part(Translation, "studies", columns=("language", "version", "text")),
    Part(Study, "pk", without=("clone_of", "size_plan", "guide", "archived_at", "version")),
    Part(SizePlan),
    Part(Qualification, columns=("name", "valid_days")),
    Part(System),
    Part(Arm),
    Part(ArmSystem, "arm__study"),
    Part(Section),
    Part(SectionArm, "section__study"),
    Part(Question, "section__study"),
    Part(Contrast),
    Part(ComparisonFamily),
    Part(ExclusionRule),
    Part(Design),
    Part(Prompt),
    Part(Output, "system__study"),
    Part(Item),
    Part(Exposure, "item__study"),
    Part(Expected, "item__study"),
    Part(Batch),
    Part(Placement, "batch__study"),
    Part(AuditEvent, columns=("study", "at", "verb", "data")),
    Part(Job, columns=("study", "code", "kind", "arguments", "result", "created_at")),
    Part(Recruitment, without=("pool", "key", "settings")),
    Part(Assignment, without=("external_ids", "qualified_by")),
    Part(PageVisit, "assignment__study", "assignment", without=("shown", "draft")),
    Part(Response, "assignment__study", "assignment"),
    Part(Exclusion, "assignment__study", "assignment", without=("note",)),
    Part(Payment, "assignment__study", columns=("assignment", "kind", "number", "amount", "currency", "made_at")),
    Part(SampleColumn),
    Part(SampleValue, "column__study"),
    Part(CodingSample),
    Part(CodingSeat, "sample__study"),
    Part(CodingItem, "sample__study", "assignment"),
    Part(Coding, "item__sample__study", "item__assignment"),
    Part(Metric, without=("file_sha256",)),
    Part(MetricScore, "metric__study"),
)
# Archives that were written before there were translations or metrics lack these: their pages were in English, and their reports have
# no metric.
ADDED_LATER = {Translation, Metric, MetricScore}
# A withdrawal leaves the place that was held. Its times say only that there was one: all are that of the launch.
TIMES = {field.name for field in Assignment._meta.local_concrete_fields if isinstance(field, models.DateTimeField)}
OF_A_PLACE = {"id", "study", "batch", "design", "origin", "queue_number", "judged_out", "released_reason", "is_late"}
UNBLINDED = "+"  # ends the label of a coder who could also view the study


# Write the rows.


def row_members(study: Study, origins: Sequence[str]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the files of the rows. Call it inside a snapshot."""
    manifest: dict[str, Any] = {"format": FORMAT, "heval": version_and_source_hash()}
    if study.stimuli_source:
        manifest["lacks"] = NO_TEXTS
    else:
        manifest["tables"] = {part.label: [field.name for field in part.fields] for part in PARTS}
    yield MANIFEST, iter([(json.dumps(manifest, indent=1) + "\n").encode()])
    for part in () if study.stimuli_source else PARTS:
        yield part.file, _lines(part, study, origins)


def _rows_of(part: Part, study: Study, origins: Sequence[str]) -> QuerySet:
    rows: QuerySet = part.model._base_manager.order_by("pk")
    if part.model is Qualification:
        return rows.filter(sections__study=study).distinct()
    rows = rows.filter(**{part.path: study.pk})
    if part.person:
        rows = select(Use.ROWS, rows, origins, path=part.person)
    match part.model.__name__:
        case "Assignment":
            return select(Use.RECORD, rows, origins)
        case "Payment":  # the report says what was paid only beside a plan
            is_owed = rows.filter(state__in=[Payment.State.PAID, Payment.State.ORDERED, Payment.State.DUE])
            return select(Use.RECORD, is_owed if study.size_plan_id else rows.none(), origins, path="assignment")
        case "SizePlan":
            return rows.filter(pk=study.size_plan_id)
        case "AuditEvent":
            return rows.filter(verb__in=["decide", IMPORTED])
        case "Job":
            return rows.filter(pk__in=study.assignments.filter(source__isnull=False).values("source"))
        case "SampleColumn":
            return rows.filter(name__in=_compared_columns(study))
        case "SampleValue":
            people = select(Use.ROWS, study.assignments.all(), origins).values("annotator")
            return rows.filter(annotator__in=people, column__name__in=_compared_columns(study))
        case "CodingItem":
            return rows.exclude(response__erased_at__isnull=False)
        case "Coding":
            return rows.exclude(item__response__erased_at__isnull=False)
    return rows


def _compared_columns(study: Study) -> list[str]:
    """Return the columns of the sample that the report reads. Others stay on the site."""
    return [name for kind, name in parse_groupings(study.compared_groups) if kind == "sample"]


def _lines(part: Part, study: Study, origins: Sequence[str]) -> Iterator[bytes]:
    unblinded = access.allowed_member_ids(Action.CODE, study) & access.allowed_member_ids(Action.VIEW, study)
    launch = study.launched_at or study.created_at
    paths = [f"{field.name}__code" if field.related_model is Annotator else field.attname for field in part.fields]
    # Django reads no decimal that SQLite stores as infinite.
    decimals = {field.attname for field in part.fields if isinstance(field, DecimalField)}
    read = [Cast(path, FloatField()) if path in decimals else path for path in paths]
    rows = _rows_of(part, study, origins).values_list(*read)
    for cells in rows.iterator(chunk_size=ROWS_AT_ONCE):
        row = {field.name: cell for field, cell in zip(part.fields, cells, strict=True)}
        for name in decimals:
            row[name] = str(row[name]) if row[name] is not None and math.isfinite(row[name]) else None
        for field in part.fields:
            if field.related_model is Annotator:
                row[field.name] = annotator_pseudonym(study, row[field.name])
            elif field.related_model is User:
                user = row[field.name]
                label = keyed_hash("coder", str(study.code), str(user))[:16]
                row[field.name] = label + (UNBLINDED if user in unblinded else "")
        if part.model is Assignment:
            row["code"] = assignment_pseudonym(row["code"])
        if part.model is Assignment and row["withdrawn_at"]:
            row = {
                name: value if name in OF_A_PLACE else launch if value and name in TIMES else None
                for name, value in row.items()
            }
        if part.model is Job:  # the file of imported answers, and nothing of how it was imported
            for name in ("arguments", "result"):
                row[name] = {key: value for key, value in (row[name] or {}).items() if key in ("filename", "sha256")}
        yield (
            json.dumps(list(row.values()), default=_plain, ensure_ascii=False, separators=(",", ":")) + "\n"
        ).encode()


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


# Read the rows.


class _Loader:
    def __init__(self, archive: ZipFile, owner: Any, code: UUID | None) -> None:
        self.archive, self.owner, self.code = archive, owner, code
        self.ids: dict[Any, dict[Any, int]] = {model: {} for model in (*NAMED_BY, *(part.model for part in PARTS))}
        self.final: dict[str, Any] = {}

    def load(self) -> Study:
        manifest = read_manifest(self.archive)
        study_row(self.archive)  # there is exactly one
        for part in PARTS:
            names = manifest["tables"].get(part.label)
            if names is None and part.model in ADDED_LATER:
                continue
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ArchiveRefused(f"The archive lacks the table {part.label}. {ANOTHER_ARCHIVE}")
            if unknown := set(names) - {field.name for field in part.fields}:
                raise _newer(f"the column {part.label}.{sorted(unknown)[0]}")
            self._load_table(part, names)
        study = self.study
        if plan := self.ids[SizePlan]:
            Study.objects.filter(pk=study.pk).update(size_plan=next(iter(plan.values())))
        set_archived_state(study, **self.final)
        study.refresh_from_db()
        return study

    @property
    def study(self) -> Study:
        return Study.objects.get(pk__in=self.ids[Study].values())

    def _load_table(self, part: Part, names: list[str]) -> None:
        fields = {field.name: field for field in part.fields}
        itself = [field.name for field in part.fields if field.related_model is part.model]
        ids, seen = self.ids[part.model], set[int]()
        waiting: list[tuple[int, dict[str, Any], str]] = []
        rows = rows_of_file(self.archive, part.file, names)
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            self._name_people(part, chunk)
            ready: list[tuple[int, dict[str, Any], str]] = []
            for row in chunk:
                where = f"{part.file}, row {row.pop('#')}"
                pk = row.pop("id", None)
                if not isinstance(pk, int) or pk in seen:
                    raise ArchiveRefused(f"{where}: id is missing or occurs twice. {ANOTHER_ARCHIVE}")
                seen.add(pk)
                later = [name for name in itself if row.get(name) is not None and row[name] not in ids]
                (waiting if later else ready).append((pk, row, where))
            self._create(part, fields, ready)
        while waiting:
            ready = [one for one in waiting if all(one[1].get(name) is None or one[1][name] in ids for name in itself)]
            if not ready:
                raise ArchiveRefused(f"{waiting[0][2]}: {itself[0]} is no row of the archive. {ANOTHER_ARCHIVE}")
            waiting = [one for one in waiting if one not in ready]
            self._create(part, fields, ready)

    def _name_people(self, part: Part, rows: Sequence[dict[str, Any]]) -> None:
        """Create the people and coders whom these rows name and who are not there yet. One who withdrew has no name."""
        for field in part.fields:
            if field.related_model not in NAMED_BY:
                continue
            known = self.ids[field.related_model]
            for row in rows:
                if row.get(field.name) is None:
                    row[field.name] = f"{WITHDRAWN}{uuid4().hex[:12]}"
            new = list(dict.fromkeys(str(row[field.name]) for row in rows if row[field.name] not in known))
            known.update(_people(new) if field.related_model is Annotator else self._coders(new))

    def _coders(self, labels: Sequence[str]) -> dict[str, int]:
        """Create accounts that nobody can use: the codings of one person belong together, and the person has no account here."""
        found = {}
        for label in labels:
            user = User.objects.create(username=f"coder-{uuid4().hex[:12]}", is_active=False)
            user.set_unusable_password()
            user.save()
            if label.endswith(UNBLINDED):
                access.add_archived_coder(self.study, user)
            found[label] = user.pk
        return found

    def _create(
        self, part: Part, fields: Mapping[str, models.Field], rows: Sequence[tuple[int, dict[str, Any], str]]
    ) -> None:
        ids, model = self.ids[part.model], part.model
        made: list[Any] = []
        for _, row, where in rows:
            cells = {
                fields[name].attname: self._cell(fields[name], value, f"{where}, column {name}")
                for name, value in row.items()
            }
            try:
                made.append(self._instance(part, cells))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ArchiveRefused(f"{where}: {error}. {ANOTHER_ARCHIVE}") from None
        if model is Qualification:
            wanted = ({name: getattr(one, name) for name in ("name", "valid_days")} for one in made)
            made = [Qualification.objects.get_or_create(owner=self.owner, **columns)[0] for columns in wanted]
        elif model is Translation:
            made = [_kept_words(one, self.owner, where) for one, (_, _, where) in zip(made, rows, strict=True)]
        else:
            made = model._base_manager.bulk_create(made)
        ids.update((pk, one.pk) for (pk, _, _), one in zip(rows, made, strict=True))

    def _instance(self, part: Part, row: dict[str, Any]) -> models.Model:
        """Return a new row. What the archive leaves out is new too, or that of the person who imports."""
        match part.model.__name__:
            case "Study":
                self.final = {name: row.pop(name, None) for name in ("state", "launched_at", "closing_at", "closed_at")}
                row |= {"owner": self.owner, "code": self.code or row["code"]}
            case "Job":
                taken = Job.objects.filter(code=row["code"]).exists()
                row |= {
                    "state": Job.State.DONE,
                    "ended_at": row["created_at"],
                    "code": uuid4() if taken else row["code"],
                }
            case "Recruitment":
                row["pool"] = ARCHIVE_POOL
            case "Assignment" if row["withdrawn_at"] is None:
                row["code"] = archived_assignment_code(row["code"])
            case "Exclusion":
                row["by"] = self.owner
            case "Payment":
                row |= {
                    "state": Payment.State.PAID,
                    "way": Payment.Way.HAND,
                    "ended_at": row["made_at"],
                    "reason": "from the archive",
                }
            case "Question":
                parse_scale(row["scale"])
        return part.model(**row)

    def _cell(self, field: models.Field, value: Any, where: str) -> Any:
        if value is None and not field.null:
            value = field.get_default()
        if value is None:
            return None
        if field.is_relation:
            known = self.ids[field.related_model]
            if not isinstance(value, int | str) or value not in known:
                raise ArchiveRefused(f"{where}: {value!r:.60} is no row of the archive. {ANOTHER_ARCHIVE}")
            return known[value]
        try:
            if isinstance(field, models.DateTimeField):
                at = datetime.fromisoformat(value) if isinstance(value, str) else value
                if at.tzinfo is None:
                    raise ValueError
                return at
            if isinstance(field, models.UUIDField):
                return value if isinstance(value, UUID) else UUID(value)
            value = json_to_column_value(field, value, where)
            if isinstance(field, models.JSONField):
                check_json_is_storable(value, where)
                return value
            if field.choices and value != "" and value not in dict(field.flatchoices):
                raise _newer(f"{field.name} “{value}”")
            if field.name != "number":  # test runs have numbers of their own, above those that a form accepts
                field.run_validators(value)
        except ValueRefused as refused:
            raise ArchiveRefused(f"{refused.path}: {refused.text} {ANOTHER_ARCHIVE}") from None
        except ValidationError as error:
            raise ArchiveRefused(f"{where}: {' '.join(error.messages)} {ANOTHER_ARCHIVE}") from None
        except (ValueError, AttributeError, TypeError):
            raise ArchiveRefused(f"{where}: {value!r:.60} is not accepted. {ANOTHER_ARCHIVE}") from None
        return value


def _kept_words(unsaved: Translation, owner: Any, where: str) -> Translation:
    """Return the row of a catalogue. Its version is the hash of its text, so that all studies with it may share it."""
    if unsaved.version != version_of(unsaved.text):
        raise ArchiveRefused(f"{where}: the version is not that of the text. {ANOTHER_ARCHIVE}")
    try:
        check_words(unsaved.text)
    except CatalogueRefused as refused:
        raise ArchiveRefused(f"{where}: {refused} {ANOTHER_ARCHIVE}") from None
    by = None if shipped_language_for(unsaved.language) else owner
    return translations.stored(unsaved.language, unsaved.text, by)


def _people(names: Sequence[str]) -> dict[str, int]:
    """Return the annotators of these pseudonyms. Those of an earlier copy of the same study are the same people."""
    codes = {}
    for name in names:
        try:
            codes[name] = uuid4() if name.startswith(WITHDRAWN) else archived_annotator_code(name)
        except ValueError:
            raise ArchiveRefused(f"{name!r:.60} is no pseudonym of an annotator. {ANOTHER_ARCHIVE}") from None
    Annotator.objects.bulk_create(
        (Annotator(code=code, pool=ARCHIVE_POOL, external_id=name) for name, code in codes.items()),
        ignore_conflicts=True,
    )
    return dict(Annotator.objects.filter(pool=ARCHIVE_POOL, external_id__in=names).values_list("external_id", "pk"))


def open_member(archive: ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except KeyError:
        raise ArchiveRefused(f"The archive lacks {name}. {ANOTHER_ARCHIVE}") from None


def read_manifest(archive: ZipFile) -> dict[str, Any]:
    """Return the manifest of rows that this heval reads. Raises ArchiveRefused."""
    if "README.md" not in archive.namelist() or "design.json" not in archive.namelist():
        raise ArchiveRefused("This zip is no archive of a study. Choose the file that “Download the archive” gives.")
    if MANIFEST not in archive.namelist():
        raise ArchiveRefused(
            "This archive was written before archives had the rows of a study (rows/manifest.json). It lacks test questions, exclusions, "
            "stopping and the links between its rows. Download the archive again from the study's site, after heval was updated there."
        )
    manifest = texts.loads(open_member(archive, MANIFEST).read(MAX_LINE))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise _newer(f"the format {found!r:.40}")
    if "lacks" in manifest:
        raise ArchiveRefused(str(manifest["lacks"])[:500])
    if not isinstance(manifest.get("tables"), dict):
        raise ArchiveRefused(f"{MANIFEST}: tables is missing. {ANOTHER_ARCHIVE}")
    if unknown := set(manifest["tables"]) - {part.label for part in PARTS}:
        raise _newer(f"the table {sorted(unknown)[0]:.60}")
    return manifest


def study_row(archive: ZipFile) -> dict[str, Any]:
    """Return the row of the study itself, with the values as they are in the archive."""
    (part,) = (part for part in PARTS if part.model is Study)
    names = read_manifest(archive)["tables"].get(part.label, [])
    rows = list(islice(rows_of_file(archive, part.file, names), 2))
    if len(rows) != 1:
        raise ArchiveRefused(f"The archive has not exactly one study. {ANOTHER_ARCHIVE}")
    return rows[0]


def rows_of_file(archive: ZipFile, file: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table by the names of its columns. “#” is the number of the row."""
    with open_member(archive, file) as member:
        number = 0
        while line := member.readline(MAX_LINE + 1):
            number += 1
            try:
                if len(line) > MAX_LINE:
                    raise ValueError("longer than any row of heval")
                cells = texts.loads(line)
                if not isinstance(cells, list) or len(cells) != len(names):
                    raise ValueError(f"not a list of {len(names)} values")
            except ValueError as error:
                raise ArchiveRefused(f"{file}, row {number}: {error}. {ANOTHER_ARCHIVE}") from None
            yield dict(zip(names, cells, strict=True)) | {"#": number}


def _newer(what: str) -> ArchiveRefused:
    return ArchiveRefused(
        f"This heval does not know {what} of the archive. Update heval to the version that made the archive, or a newer one."
    )


DAMAGE = (BadZipFile, ZlibError, EOFError, OSError, NotImplementedError, RuntimeError, UnicodeDecodeError)


@contextmanager
def opened_archive(file: Path | IO[bytes], max_bytes: int = MAX_UNPACKED) -> Iterator[ZipFile]:
    """Open an archive. Damage of the zip, found now or later, becomes ArchiveRefused."""
    try:
        with ZipFile(file) as archive:
            # A member never gives more bytes than it declares.
            if sum(one.file_size for one in archive.infolist()) > max_bytes:
                raise ArchiveRefused(
                    f"The archive has more than {max_bytes:,} bytes when unpacked, which is more than this heval reads."
                )
            yield archive
    except DAMAGE as error:
        raise ArchiveRefused(f"The archive is damaged or cut off ({error}). Download it again.") from error


def is_archive(path: Path) -> bool:
    """Return whether the file is the archive of a study, and no zip of a table."""
    try:
        with ZipFile(path) as archive:
            return {"design.json", "README.md", "responses.jsonl"} <= set(archive.namelist())
    except DAMAGE:
        return False


def load_rows(archive: ZipFile, owner: Any, code: UUID | None = None) -> Study:
    """Store the study of an archive with all its rows, in one transaction, and return it. Raises ArchiveRefused; then nothing is stored.

    ``code``: of the new study. None: that of the archive.
    """
    try:
        with transaction.atomic():
            return _Loader(archive, owner, code).load()
    except DatabaseError as error:
        raise ArchiveRefused(f"The rows of the archive contradict each other ({error}). {ANOTHER_ARCHIVE}") from error
