"""A whole study as one readable file, both ways: everything of its design, no people, no answers. docs: reference/import-formats.

What is read back has the same design: the sha256 of the new draft is the original's. A bundle may be written by hand, so it is
read strictly, and each message names the path of what is wrong, such as ``sections[1].questions[0].scale``.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from datetime import date
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Q

from . import audit, strict_json
from .design import (
    ARM_FIELDS,
    CONTRAST_FIELDS,
    QUESTION_FIELDS,
    STUDY_FIELDS,
    canonical,
    design_of,
    sha256_of,
)
from .draw import content_of
from .kept_images import kept
from .media import EXTENSION, ImageRefused, encode_image, path_of
from .models import (
    TEST_NUMBERS,
    Arm,
    ArmSystem,
    Batch,
    Contrast,
    ExclusionRule,
    Expected,
    Exposure,
    Item,
    Output,
    Placement,
    Prompt,
    Question,
    Section,
    SectionArm,
    Study,
    StudyMember,
    System,
)
from .protocols import REGISTRY
from .rules import REGISTRY as RULES
from .scales import read_scale
from .stimuli import Preparation, SettingsRefused
from .texts import TextRefused, clean_text, name_key

SCHEMA = "heval.bundle/1"
MAX_BUNDLE_BYTES = 200 * 1024 * 1024
MAX_DEPTH = 32
MAX_PROBLEMS = 100

PROMPT_FIELDS = ("key", "text", "source", "media", "domain", "language", "attributes")
OUTPUT_FIELDS = ("sample", "format", "text", "media", "alt", "is_empty", "original", "language")
SECTION_FIELDS = ("position", "protocol", "purpose", "m", "settings")
SYSTEM_FIELDS = ("name", "is_human", "is_reference")
RULE_FIELDS = ("position", "rule", "settings", "role")
BATCH_FIELDS = ("number", "key", "wanted")
ITEM_FIELDS = ("number", "kind")
EXPECTED_FIELDS = ("low", "high", "explanation")


class BundleRefused(ValueError):
    """What is no bundle, or a wrong one: ``problems`` names each fault by its path."""

    def __init__(self, problems: list[str]):
        super().__init__("; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else ""))
        self.problems = problems


class BundleIncomplete(Exception):
    """A study that cannot be written whole: a file of it is not there."""


# Writing


def bundle_of(study: Study) -> dict[str, Any]:
    """Everything of a study's design as plain values, keyed by names: texts inline, images as base64."""
    design = design_of(study)
    design.pop("retired")  # a matter of the launched study: a new draft has retired nothing
    prompts = [_columns(prompt, PROMPT_FIELDS) for prompt in study.prompts.order_by("key").iterator(1000)]
    rows = Output.objects.filter(system__study=study).select_related("system", "prompt")
    outputs = [
        {"system": output.system.name, "prompt": output.prompt.key, **_columns(output, OUTPUT_FIELDS)}
        for output in rows.order_by("prompt__key", "system__name", "sample").iterator(1000)
    ]
    names = {row["media"] for row in (*prompts, *outputs)} - {""}
    return design | {
        "schema": SCHEMA,
        "prompts": prompts,
        "outputs": outputs,
        "items": _items_of(study),
        "batches": _batches_of(study),
        "images": {name: _image(name) for name in sorted(names)},
    }


def bundle_text(study: Study) -> str:
    """The bundle as it is written to a file."""
    return json.dumps(bundle_of(study), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def write_bundle(study: Study, file: IO[str]) -> None:
    """Write the study to a text file (UTF-8). Raises BundleIncomplete where an image is not there any more."""
    file.write(bundle_text(study))


def _columns(row: models.Model, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _image(name: str) -> str:
    try:
        return b64encode(path_of(Path(settings.MEDIA_ROOT), name).read_bytes()).decode("ascii")
    except (OSError, ImageRefused) as error:
        raise BundleIncomplete(
            f"The image {name} is not among the stored images: the study cannot be exported whole."
        ) from error


def _items_of(study: Study) -> list[dict[str, Any]]:
    """Items that the design holds itself: ready-made, practice and test items. Drawn ones follow from seed and design."""
    in_batches = Q(placements__batch__origin=Batch.Origin.IMPORTED)
    by_hand = (
        Q(expected__isnull=False) | Q(kind__in=[Item.Kind.TEST, Item.Kind.PRACTICE]) | Q(section__purpose="training")
    )
    chosen = study.items.filter(by_hand | in_batches, number__lt=TEST_NUMBERS).values("pk").distinct()
    exposures: dict[int, list[list[Any]]] = {}
    rows = Exposure.objects.filter(item__in=chosen).order_by("item", "number")
    for item, system, prompt, sample in rows.values_list(
        "item_id", "output__system__name", "output__prompt__key", "output__sample"
    ).iterator(2000):
        exposures.setdefault(item, []).append([system, prompt, sample])
    expected: dict[int, list[dict[str, Any]]] = {}
    for each in (
        Expected.objects.filter(item__in=chosen)
        .select_related("question", "exposure")
        .order_by("item", "question__key")
    ):
        expected.setdefault(each.item_id, []).append(
            {
                "question": each.question.key,
                "exposure": each.exposure and each.exposure.number,
                **_columns(each, EXPECTED_FIELDS),
            }
        )
    return [
        {
            "section": item.section.position, "prompt": item.prompt.key, **_columns(item, ITEM_FIELDS),
            "outputs": exposures.get(item.pk, []), "expected": expected.get(item.pk, []),
        }
        for item in study.items.filter(pk__in=chosen).select_related("section", "prompt").order_by("section__position", "number")
    ]  # fmt: skip


def _batches_of(study: Study) -> list[dict[str, Any]]:
    ready_made = study.batches.filter(origin=Batch.Origin.IMPORTED)
    places: dict[int, list[list[int]]] = {}
    for batch, section, number in (
        Placement.objects.filter(batch__in=ready_made.values("pk")).order_by("batch", "number")
        .values_list("batch_id", "item__section__position", "item__number").iterator(2000)
    ):  # fmt: skip
        places.setdefault(batch, []).append([section, number])
    return [
        {"arm": batch.arm.name, **_columns(batch, BATCH_FIELDS), "items": places.get(batch.pk, [])}
        for batch in ready_made.select_related("arm").order_by("number")
    ]


# Reading


def read_bundle(data: bytes | str | dict[str, Any], owner: Any) -> Study:
    """A new draft from a bundle, owned by this user. Raises BundleRefused; then nothing was written."""
    value = parsed(data) if isinstance(data, bytes | str) else data
    bundle = _Bundle(value)
    bundle.check()
    with kept(bundle.images, bundle.images.__getitem__), transaction.atomic():
        study = bundle.write(owner)
        digest = sha256_of(canonical(design_of(study)))
        audit.record("import bundle", study=study, by=owner, design_sha256=digest)
    return study


def parsed(data: bytes | str) -> dict[str, Any]:
    """The JSON of a bundle, read strictly: no duplicate keys, no NaN, no characters that a database cannot hold."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise BundleRefused([f"The file has {len(data):,} bytes, {MAX_BUNDLE_BYTES:,} are allowed."])
    try:
        value = strict_json.loads(data)
    except strict_json.BadJson as error:
        raise BundleRefused([f"{error.place}: {error.text}." if error.place else f"The file {error}"]) from error
    if not isinstance(value, dict):
        raise BundleRefused(["The file must hold one JSON object."])
    return value


class _Bundle:
    """Checks all of a bundle, collecting what is wrong; then writes it."""

    def __init__(self, value: dict[str, Any]):
        self.value = value
        self.problems: list[str] = []

    def refuse(self, path: str, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            # A name may hold half of a surrogate pair, which no page can show.
            self.problems.append(f"{path}: {text}".encode("utf-8", "replace").decode())

    # Shapes

    def rows(self, value: dict[str, Any], name: str, path: str = "") -> list[tuple[str, Any]]:
        found = value.get(name)
        where = f"{path}.{name}" if path else name
        if not isinstance(found, list):
            self.refuse(where, "must be a list." if name in value else "is missing.")
            return []
        return [(f"{where}[{number}]", each) for number, each in enumerate(found)]

    def object(self, value: Any, path: str, names: tuple[str, ...]) -> bool:
        """Whether the value is an object with exactly these names."""
        if not isinstance(value, dict):
            self.refuse(path, "must be an object.")
            return False
        unknown, missing = sorted(set(value) - set(names)), sorted(set(names) - set(value))
        for name in unknown:
            self.refuse(f"{path}.{name[:80]}" if path else name[:80], "is not known here.")
        for name in missing:
            self.refuse(f"{path}.{name}" if path else name, "is missing.")
        return not (unknown or missing)

    def columns(
        self, model: type[models.Model], value: dict[str, Any], names: tuple[str, ...], path: str
    ) -> dict[str, Any]:
        """The values of these columns, each of the type, length and choice that the column wants."""
        return {name: self.column(model._meta.get_field(name), value[name], f"{path}.{name}") for name in names}

    def column(self, field: models.Field, value: Any, path: str) -> Any:
        try:
            value = _typed(field, value, path)
            if isinstance(field, models.JSONField):
                _check_json(value, path)
                return value
            return field.clean(value, None)
        except _Refused as refused:
            self.refuse(refused.path, refused.text)
        except ValidationError as error:
            self.refuse(path, " ".join(error.messages))
        return None

    def reference(self, value: Any, known: Any, path: str, what: str) -> Any:
        """One of the known names or numbers."""
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in known:
            self.refuse(path, f"there is no {what} {value!r:.60}.")
            return None
        return value

    def references(self, value: Any, known: Any, path: str, what: str) -> list[Any]:
        if not isinstance(value, list):
            self.refuse(path, "must be a list.")
            return []
        for number, each in enumerate(value):
            self.reference(each, known, f"{path}[{number}]", what)
        if not self.problems and len(set(value)) < len(value):
            self.refuse(path, "names one of them twice.")
        return value

    def once(self, seen: set, name: Any, path: str) -> None:
        if name is None:  # refused already
            return
        key = name_key(name) if isinstance(name, str) else name
        if key in seen:
            self.refuse(path, f"{name!r:.60} stands there twice (names differ in more than case and blanks).")
        seen.add(key)

    # Checking, in the order in which parts refer to each other

    def check(self) -> None:
        value = self.value
        if not isinstance(value, dict):
            raise BundleRefused(["The bundle must be an object."])
        if value.get("schema") != SCHEMA:
            raise BundleRefused([f"schema: must be {SCHEMA}, not {value.get('schema')!r:.60}."])
        self.object(value, "", (
            "schema", "study", "systems", "arms", "sections", "contrasts", "exclusion_rules", "prompts", "outputs", "items",
            "batches", "images",
        ))  # fmt: skip
        self._stop()
        self._check_study()
        self._check_systems_and_arms()
        self._check_sections()
        self._check_contrasts_and_rules()
        self._stop()  # stimuli refer to systems, and there are many of them
        self._check_images()
        self._check_stimuli()
        self._stop()
        self._check_items_and_batches()
        self._stop()

    def _stop(self) -> None:
        if self.problems:
            raise BundleRefused(self.problems)

    def _check_study(self) -> None:
        study = self.value["study"]
        self.study: dict[str, Any] = {}
        if not self.object(study, "study", STUDY_FIELDS):
            return
        self.study = self.columns(Study, study, STUDY_FIELDS, "study")
        if study["preparation"]:
            try:
                Preparation.from_json(study["preparation"])
            except SettingsRefused as refused:
                self.refuse("study.preparation", str(refused))
        target, cap = self.study["target_n"], self.study["target_cap"]
        if target and cap and cap < target:
            self.refuse("study.target_cap", "must not be below target_n.")

    def _check_systems_and_arms(self) -> None:
        self.systems: dict[str, dict[str, Any]] = {}
        seen: set = set()
        for path, row in self.rows(self.value, "systems"):
            if self.object(row, path, SYSTEM_FIELDS):
                columns = self.columns(System, row, SYSTEM_FIELDS, path)
                self.once(seen, columns["name"], f"{path}.name")
                self.systems[columns["name"]] = columns
        self.arms: dict[str, tuple[dict[str, Any], list[str]]] = {}
        seen = set()
        for path, row in self.rows(self.value, "arms"):
            if self.object(row, path, (*ARM_FIELDS, "systems")):
                columns = self.columns(Arm, row, ARM_FIELDS, path)
                self.once(seen, columns["name"], f"{path}.name")
                shown = self.references(row["systems"], self.systems, f"{path}.systems", "system")
                self.arms[columns["name"]] = columns, shown

    def _check_sections(self) -> None:
        self.sections: dict[int, dict[str, Any]] = {}
        rows = self.rows(self.value, "sections")
        positions = {
            row["position"] for _, row in rows if isinstance(row, dict) and isinstance(row.get("position"), int)
        }
        seen: set = set()
        for path, row in rows:
            if not self.object(row, path, (*SECTION_FIELDS, "reuses", "arms", "questions")):
                continue
            columns = self.columns(Section, row, SECTION_FIELDS, path)
            self.once(seen, columns["position"], f"{path}.position")
            if row["reuses"] is not None:
                self.reference(
                    row["reuses"], [p for p in positions if p != row["position"]], f"{path}.reuses", "other section"
                )
            protocol = REGISTRY.get(columns["protocol"])
            if protocol is not None:
                self._check_settings(protocol.settings_form, row["settings"], f"{path}.settings")
            self.sections[row["position"] if isinstance(row["position"], int) else -1] = {
                "columns": columns,
                "reuses": row["reuses"],
                "arms": self.references(row["arms"], self.arms, f"{path}.arms", "arm"),
                "questions": self._questions(row, path),
            }

    def _questions(self, section: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        keys: set = set()
        positions: set = set()
        for where, row in self.rows(section, "questions", path):
            if not self.object(row, where, (*QUESTION_FIELDS, "x", "y")):
                continue
            columns = self.columns(Question, row, QUESTION_FIELDS, where)
            self._check_scale(row["scale"], f"{where}.scale")
            self._check_skip_reasons(row["skip_reasons"], f"{where}.skip_reasons")
            self.once(keys, columns["key"], f"{where}.key")
            self.once(positions, columns["position"], f"{where}.position")
            x, y = self._pair(row, where)
            found[str(columns["key"])] = columns | {"x": x, "y": y}
        return found

    def _check_scale(self, scale: Any, path: str) -> None:
        if not isinstance(scale, dict):
            return  # said already
        kinds = {
            "kind": str, "minimum": int, "maximum": int, "low": str, "middle": str, "high": str, "labels": list, "options": list,
            "minimum_length": int, "maximum_length": int, "is_long": bool, "is_best_first": bool,
        }  # fmt: skip
        words = {str: "a text", int: "a whole number", list: "a list", bool: "true or false"}
        before = len(self.problems)
        for name, value in scale.items():
            kind = kinds.get(name)
            if kind is None:
                self.refuse(f"{path}.{name[:80]}", "a scale has no such part.")
            elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                self.refuse(f"{path}.{name}", f"must be {words[kind]}.")
        if len(self.problems) > before:
            return
        for number, label in enumerate(scale.get("labels", [])):
            if not isinstance(label, str):
                self.refuse(f"{path}.labels[{number}]", "must be a text.")
        for number, option in enumerate(scale.get("options", [])):
            where = f"{path}.options[{number}]"
            if not isinstance(option, dict) or not {"key", "label"} <= set(option) <= {"key", "label", "screens_out"}:
                self.refuse(where, "must be an object with key, label and perhaps screens_out.")
            elif not (isinstance(option["key"], str) and isinstance(option["label"], str)):
                self.refuse(where, "key and label must be texts.")
            elif not isinstance(option.get("screens_out", False), bool):
                self.refuse(f"{where}.screens_out", "must be true or false.")
        if len(self.problems) == before:
            try:
                read_scale(scale)
            except ValueError as error:
                self.refuse(f"{path}.kind" if "There is no scale" in str(error) else path, str(error))

    def _check_skip_reasons(self, reasons: Any, path: str) -> None:
        if not isinstance(reasons, list):
            self.refuse(path, "must be a list.")
            return
        for number, each in enumerate(reasons):
            is_one = isinstance(each, dict) and set(each) == {"key", "label"}
            if not is_one or not all(isinstance(part, str) and part for part in each.values()):
                self.refuse(f"{path}[{number}]", "must be an object with the texts key and label.")

    def _check_settings(self, form: type | None, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            return  # said already
        known = set(form().fields) if form is not None else set()
        for name in sorted(set(value) - known):
            there = f"; there are {', '.join(sorted(known))}" if known else ""
            self.refuse(f"{path}.{name[:80]}", f"there is no such setting{there}.")

    def _pair(self, row: dict[str, Any], path: str) -> tuple[str | None, str | None]:
        x, y = row["x"], row["y"]
        for name, value in (("x", x), ("y", y)):
            if value is not None:
                self.reference(value, self.systems, f"{path}.{name}", "system")
        if (x is None) != (y is None):
            self.refuse(path, "has x and y, or neither.")
        elif x is not None and x == y:
            self.refuse(f"{path}.y", "is the same system as x.")
        return x, y

    def _check_contrasts_and_rules(self) -> None:
        self.contrasts: list[dict[str, Any]] = []
        seen: set = set()
        for path, row in self.rows(self.value, "contrasts"):
            if not self.object(row, path, (*CONTRAST_FIELDS, "section", "x", "y")):
                continue
            columns = self.columns(Contrast, row, CONTRAST_FIELDS, path)
            x, y = self._pair(row, path)
            if row["section"] is not None:
                self.reference(row["section"], self.sections, f"{path}.section", "section")
            conditions = (columns["x_condition"], columns["y_condition"])
            if bool(conditions[0]) != bool(conditions[1]) or (conditions[0] and (conditions[0] == conditions[1] or x)):
                self.refuse(path, "compares two systems, or two different conditions, or neither.")
            if columns["margin"] == 0:
                self.refuse(f"{path}.margin", "must be above 0, or null.")
            pair = frozenset(map(repr, (x, y))) if x else frozenset(conditions)
            same = (row["section"], columns["estimand"], columns["criterion"], pair) if x or conditions[0] else object()
            if same in seen:
                self.refuse(path, "stands there already, perhaps reversed.")
            seen.add(same)
            self.contrasts.append(columns | {"x": x, "y": y, "section": row["section"]})
        self.rules: list[dict[str, Any]] = []
        named: set = set()
        for path, row in self.rows(self.value, "exclusion_rules"):
            if self.object(row, path, RULE_FIELDS):
                columns = self.columns(ExclusionRule, row, RULE_FIELDS, path)
                self.once(named, columns["rule"], f"{path}.rule")
                if columns["rule"] in RULES and RULES[columns["rule"]].settings_form is not None:
                    self._check_settings(RULES[columns["rule"]].settings_form, row["settings"], f"{path}.settings")
                self.rules.append(columns)

    def _check_images(self) -> None:
        self.images: dict[str, bytes] = {}
        images = self.value["images"]
        if not isinstance(images, dict):
            self.refuse("images", "must be an object of base64 by name.")
            return
        for name, text in images.items():
            path = f"images.{name[:80]}"
            try:
                data = b64decode(text if isinstance(text, str) else "", validate=True)
                # "VP8 " right behind the header: one lossy frame and nothing else, as this application encodes.
                if data[:4] != b"RIFF" or data[8:16] != b"WEBPVP8 " or sha256(data).hexdigest() + EXTENSION != name:
                    self.refuse(
                        path,
                        "is not an image as a study stores it (WebP, named by its sha256); import images by a zip.",
                    )
                    continue
                encode_image(data)
                self.images[name] = data
            except (Base64Error, ValueError) as error:
                self.refuse(path, str(error) if isinstance(error, ImageRefused) else "is not base64.")

    def _check_stimuli(self) -> None:
        self.prompts: dict[str, dict[str, Any]] = {}
        seen: set = set()
        for path, row in self.rows(self.value, "prompts"):
            if self.object(row, path, PROMPT_FIELDS):
                columns = self.columns(Prompt, row, PROMPT_FIELDS, path)
                self.once(seen, columns["key"], f"{path}.key")
                self._check_media(columns["media"], path)
                self.prompts[str(columns["key"])] = columns
        self.outputs: dict[tuple[str, str, int], dict[str, Any]] = {}
        for path, row in self.rows(self.value, "outputs"):
            if not self.object(row, path, (*OUTPUT_FIELDS, "system", "prompt")):
                continue
            columns = self.columns(Output, row, OUTPUT_FIELDS, path)
            system = self.reference(row["system"], self.systems, f"{path}.system", "system")
            prompt = self.reference(row["prompt"], self.prompts, f"{path}.prompt", "prompt")
            self._check_media(columns["media"], path)
            if bool(columns["text"]) + bool(columns["media"]) + bool(columns["is_empty"]) != 1:
                self.refuse(path, "must have exactly one of text, media and is_empty.")
            key = (system, prompt, columns["sample"])
            if key in self.outputs:
                self.refuse(path, f"{system} on {prompt}, sample {columns['sample']}, stands there twice.")
            self.outputs[key] = columns

    def _check_media(self, name: Any, path: str) -> None:
        if name and name not in self.images:
            self.refuse(f"{path}.media", f"the image {name!r:.80} is not among images.")

    def _check_items_and_batches(self) -> None:
        self.items: dict[tuple[int, int], dict[str, Any]] = {}
        contents: set = set()
        for path, row in self.rows(self.value, "items"):
            if not self.object(row, path, (*ITEM_FIELDS, "section", "prompt", "outputs", "expected")):
                continue
            columns = self.columns(Item, row, ITEM_FIELDS, path)
            section = self.reference(row["section"], self.sections, f"{path}.section", "section")
            prompt = self.reference(row["prompt"], self.prompts, f"{path}.prompt", "prompt")
            outputs = self._item_outputs(row, path)
            content = (section, prompt, columns["kind"], tuple(sorted(map(str, outputs))))
            if (section, columns["number"]) in self.items or content in contents:
                self.refuse(path, "its number, or what it shows, stands in the section already.")
            contents.add(content)
            expected = self._expected(row, path, section, len(outputs))
            self.items[section, columns["number"]] = columns | {
                "prompt": prompt,
                "outputs": outputs,
                "expected": expected,
            }
        self.batches: list[dict[str, Any]] = []
        keys: set = set()
        numbers: set = set()
        for path, row in self.rows(self.value, "batches"):
            if not self.object(row, path, (*BATCH_FIELDS, "arm", "items")):
                continue
            columns = self.columns(Batch, row, BATCH_FIELDS, path)
            self.reference(row["arm"], self.arms, f"{path}.arm", "arm")
            self.once(numbers, columns["number"], f"{path}.number")
            if columns["key"]:
                self.once(keys, columns["key"], f"{path}.key")
            places = []
            for where, place in self.rows(row, "items", path):
                is_place = isinstance(place, list) and all(type(part) is int for part in place)
                if is_place and tuple(place) in self.items:
                    places.append(tuple(place))
                else:
                    self.refuse(where, "must be [section, number] of one of items.")
            if len(set(places)) < len(places):
                self.refuse(f"{path}.items", "an item stands there twice.")
            self.batches.append(columns | {"arm": row["arm"], "items": places})

    def _item_outputs(self, row: dict[str, Any], path: str) -> list[tuple[str, str, int]]:
        found = []
        for where, each in self.rows(row, "outputs", path):
            is_key = isinstance(each, list) and len(each) == 3 and all(isinstance(part, str | int) for part in each)
            if not is_key or tuple(each) not in self.outputs:
                self.refuse(where, "must be [system, prompt, sample] of one of outputs.")
            else:
                found.append(tuple(each))
        if len(set(found)) < len(found):
            self.refuse(f"{path}.outputs", "an output stands there twice.")
        return found

    def _expected(self, row: dict[str, Any], path: str, section: Any, exposures: int) -> list[dict[str, Any]]:
        questions = self.sections[section]["questions"] if section in self.sections else {}
        found: list[dict[str, Any]] = []
        seen: set = set()
        for where, each in self.rows(row, "expected", path):
            if not self.object(each, where, (*EXPECTED_FIELDS, "question", "exposure")):
                continue
            columns = self.columns(Expected, each, EXPECTED_FIELDS, where)
            question = self.reference(each["question"], questions, f"{where}.question", "question of this section")
            self.once(seen, question, f"{where}.question")
            exposure, low, high = each["exposure"], columns["low"], columns["high"]
            is_range = low is not None and high is not None and low <= high and exposure is None
            is_exposure = low is None and high is None and type(exposure) is int and 0 <= exposure < exposures
            if not (is_range or is_exposure):
                self.refuse(where, "must be a range from low to high, or the number of an exposure.")
            found.append(columns | {"question": question, "exposure": exposure})
        return found

    # Writing

    def write(self, owner: Any) -> Study:
        study = Study.objects.create(**self.study, owner=owner)
        if owner is not None:
            StudyMember.objects.create(study=study, user=owner, role=StudyMember.Role.OWNER)
        systems = _by(
            System.objects.bulk_create(System(study=study, **columns) for columns in self.systems.values()), "name"
        )
        arms = _by(Arm.objects.bulk_create(Arm(study=study, **columns) for columns, _ in self.arms.values()), "name")
        ArmSystem.objects.bulk_create(
            ArmSystem(arm=arms[name], system=systems[each]) for name, (_, shown) in self.arms.items() for each in shown
        )
        sections = self._write_sections(study, arms)
        questions = self._write_questions(sections, systems)
        Contrast.objects.bulk_create(
            Contrast(study=study, **row | {
                "x": systems.get(row["x"]), "y": systems.get(row["y"]), "section": sections.get(row["section"]),
            })
            for row in self.contrasts
        )  # fmt: skip
        ExclusionRule.objects.bulk_create(ExclusionRule(study=study, **columns) for columns in self.rules)
        prompts = _by(
            Prompt.objects.bulk_create((Prompt(study=study, **columns) for columns in self.prompts.values()), 500),
            "key",
        )
        made = Output.objects.bulk_create(
            (
                Output(system=systems[system], prompt=prompts[prompt], **columns)
                for (system, prompt, _), columns in self.outputs.items()
            ),
            500,
        )
        outputs = dict(zip(self.outputs, made, strict=True))
        self._write_items(study, arms, sections, questions, prompts, outputs)
        study.refresh_from_db()
        return study

    def _write_sections(self, study: Study, arms: dict[str, Arm]) -> dict[int, Section]:
        rows = Section.objects.bulk_create(Section(study=study, **row["columns"]) for row in self.sections.values())
        sections = {row.position: row for row in rows}
        for position, row in self.sections.items():
            if row["reuses"] is not None:
                sections[position].reuses = sections[row["reuses"]]
        Section.objects.bulk_update(rows, ["reuses"])
        SectionArm.objects.bulk_create(
            SectionArm(section=sections[position], arm=arms[name])
            for position, row in self.sections.items()
            for name in row["arms"]
        )
        return sections

    def _write_questions(self, sections, systems) -> dict[tuple[int, str], Question]:
        keys = [(position, key) for position, row in self.sections.items() for key in row["questions"]]
        made = Question.objects.bulk_create(
            Question(
                section=sections[position], **columns | {"x": systems.get(columns["x"]), "y": systems.get(columns["y"])}
            )
            for position, row in self.sections.items()
            for columns in row["questions"].values()
        )
        return dict(zip(keys, made, strict=True))

    def _write_items(self, study, arms, sections, questions, prompts, outputs) -> None:
        rows = Item.objects.bulk_create(
            (
                Item(
                    study=study, section=sections[position], number=number, prompt=prompts[row["prompt"]], kind=row["kind"],
                    content=content_of(prompts[row["prompt"]].pk, [outputs[key].pk for key in row["outputs"]], row["kind"]),
                )
                for (position, number), row in self.items.items()
            ),
            500,
        )  # fmt: skip
        items = dict(zip(self.items, rows, strict=True))
        exposures = {
            (place, number): Exposure(item=items[place], output=outputs[key], number=number)
            for place, row in self.items.items()
            for number, key in enumerate(row["outputs"])
        }
        Exposure.objects.bulk_create(exposures.values(), 500)
        Expected.objects.bulk_create(
            Expected(
                item=items[place], question=questions[place[0], each["question"]],
                exposure=exposures[place, each["exposure"]] if each["exposure"] is not None else None,
                **{name: each[name] for name in EXPECTED_FIELDS},
            )
            for place, row in self.items.items()
            for each in row["expected"]
        )  # fmt: skip
        batches = Batch.objects.bulk_create(
            Batch(
                study=study, arm=arms[row["arm"]], origin=Batch.Origin.IMPORTED, **{name: row[name] for name in BATCH_FIELDS}
            )
            for row in self.batches
        )  # fmt: skip
        Placement.objects.bulk_create(
            (
                Placement(batch=batch, item=items[place], number=number)
                for batch, row in zip(batches, self.batches, strict=True)
                for number, place in enumerate(row["items"])
            ),
            500,
        )


def _by(rows: list[Any], name: str) -> dict[str, Any]:
    return {getattr(row, name): row for row in rows}


# Values


class _Refused(Exception):
    def __init__(self, path: str, text: str):
        super().__init__(text)
        self.path, self.text = path, text


def _typed(field: models.Field, value: Any, path: str) -> Any:
    """The value as the column's Python type; a JSON value of another type is refused, never converted."""
    if value is None and field.null:
        return None
    if isinstance(field, models.JSONField):
        kind: type = list if field.default is list else dict
        return value if isinstance(value, kind) else _wrong(path, "a list" if kind is list else "an object")
    if isinstance(field, models.BooleanField):
        return value if isinstance(value, bool) else _wrong(path, "true or false")
    if isinstance(field, models.IntegerField):
        return value if type(value) is int else _wrong(path, "a whole number")
    if isinstance(field, models.FloatField):
        return float(value) if type(value) in (int, float) else _wrong(path, "a number")
    if not isinstance(value, str):
        _wrong(path, "a text")
    if isinstance(field, models.DecimalField):
        try:
            number = Decimal(value)
        except InvalidOperation:
            _wrong(path, "a decimal number in quotes, such as “2.50”")
        return number if number.is_finite() else _wrong(path, "a decimal number in quotes, such as “2.50”")
    if isinstance(field, models.DateField):
        try:
            return date.fromisoformat(value)
        except ValueError:
            _wrong(path, "a date such as 2026-12-31")
    return _text(value, path)


def _wrong(path: str, what: str) -> Any:
    raise _Refused(path, f"must be {what}.")


def _text(value: str, path: str) -> str:
    try:
        clean_text(value)
    except TextRefused as refused:
        raise _Refused(path, str(refused).removeprefix("text: ")) from None
    return value


def _check_json(value: Any, path: str, depth: int = 1) -> None:
    """Every text within is one that a database can hold, and nothing is nested without end."""
    if depth > MAX_DEPTH:
        raise _Refused(path[:200], f"is nested more than {MAX_DEPTH} levels deep.")
    if isinstance(value, str):
        _text(value, path)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check_json(each, f"{path}[{number}]", depth + 1)
    elif isinstance(value, dict):
        for name, each in value.items():
            _text(name, path)
            _check_json(each, f"{path}.{name}", depth + 1)
