"""A study's bundle: its fields, and the validator that reads them."""

from base64 import b64decode
from binascii import Error as Base64Error
from datetime import date
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from studies.design.comparisons import hypothesis_problem, order_fault, too_wide_margin_problem
from studies.design.serialization import (
    ARM_FIELDS,
    CONTRAST_FIELDS,
    FAMILY_FIELDS,
    LATER_CONTRAST_FIELDS,
    LATER_STUDY_FIELDS,
    QUESTION_FIELDS,
    STUDY_FIELDS,
)
from studies.models import (
    Arm,
    Batch,
    ComparisonFamily,
    Contrast,
    ExclusionRule,
    Expected,
    Item,
    Output,
    Prompt,
    Qualification,
    Question,
    Section,
    Study,
    System,
    Translation,
)
from studies.models.design import REGISTRY as RULES
from studies.protocols import REGISTRY
from studies.protocols.base.fields import OPTION_FLAGS, SCALE_KINDS, parse_scale
from studies.services.lifecycle import FileRefused
from studies.services.translation_files import read_file
from studies.stimuli.images import EXTENSION, ImageRefused, encode_image
from studies.stimuli.normalising import Preparation
from studies.stimuli.texts import MAX_DEPTH, SettingsRefused, TextRefused, advice_on_unknown_name, clean_text, name_key

# The parts of a bundle, and the errors for refused bundles.


SCHEMA = "heval.bundle/1"
MAX_BUNDLE_BYTES = 200 * 1024 * 1024
MAX_PROBLEMS = 100

PROMPT_FIELDS = ("key", "text", "source", "media", "domain", "language", "attributes", "group")
OUTPUT_FIELDS = ("sample", "format", "text", "media", "alt", "is_empty", "original", "language", "warning")
SECTION_FIELDS = ("position", "protocol", "purpose", "m", "settings")
TRANSLATION_FIELDS = ("language", "text")
# Only sections that are tests have them.
TEST_FIELDS = ("pass_mark", "qualification")
QUALIFICATION_FIELDS = ("name", "valid_days")
SYSTEM_FIELDS = ("name", "is_human", "reference")
RULE_FIELDS = ("position", "rule", "settings", "role")
BATCH_FIELDS = ("number", "key", "wanted")
ITEM_FIELDS = ("number", "kind", "test_type")
EXPECTED_FIELDS = ("low", "high", "explanation")


class BundleRefused(ValueError):
    """Not a bundle, or an invalid one. ``problems`` lists each fault with its path."""

    def __init__(self, problems: list[str]):
        super().__init__("; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else ""))
        self.problems = problems


class BundleIncomplete(Exception):
    """A study that cannot be exported completely, because one of its files is missing."""


# Check single values of a bundle against the types of their columns.


class ValueRefused(Exception):
    def __init__(self, path: str, text: str):
        super().__init__(text)
        self.path, self.text = path, text


def json_to_column_value(field: models.Field, value: Any, json_path: str) -> Any:
    """Return the value as the column's Python type. Refuse a JSON value of another type; never convert it."""
    if value is None and field.null:
        return None
    if isinstance(field, models.JSONField):
        kind: type = list if field.default is list else dict
        return value if isinstance(value, kind) else _wrong(json_path, "a list" if kind is list else "an object")
    if isinstance(field, models.BooleanField):
        return value if isinstance(value, bool) else _wrong(json_path, "true or false")
    if isinstance(field, models.IntegerField):
        return value if type(value) is int else _wrong(json_path, "a whole number")
    if isinstance(field, models.FloatField):
        return float(value) if type(value) in (int, float) else _wrong(json_path, "a number")
    if not isinstance(value, str):
        _wrong(json_path, "a text")
    if isinstance(field, models.DecimalField):
        try:
            number = Decimal(value)
        except InvalidOperation:
            _wrong(json_path, "a decimal number in quotes, such as “2.50”")
        return number if number.is_finite() else _wrong(json_path, "a decimal number in quotes, such as “2.50”")
    if isinstance(field, models.DateField):
        try:
            return date.fromisoformat(value)
        except ValueError:
            _wrong(json_path, "a date such as 2026-12-31")
    return _text(value, json_path)


def _wrong(path: str, expected: str) -> Any:
    raise ValueRefused(path, f"must be {expected}.")


def _text(value: str, path: str) -> str:
    try:
        clean_text(value)
    except TextRefused as refused:
        raise ValueRefused(path, str(refused).removeprefix("text: ")) from None
    return value


def check_json_is_storable(value: Any, json_path: str, depth: int = 1) -> None:
    """Check that a database can store every text in the value, and that its nesting is limited."""
    if depth > MAX_DEPTH:
        raise ValueRefused(json_path[:200], f"is nested more than {MAX_DEPTH} levels deep.")
    if isinstance(value, str):
        _text(value, json_path)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            check_json_is_storable(part, f"{json_path}[{number}]", depth + 1)
    elif isinstance(value, dict):
        for name, part in value.items():
            _text(name, json_path)
            check_json_is_storable(part, f"{json_path}.{name}", depth + 1)


# Check the parts of a bundle. Report all faults at once, each with its path.


class BaseValidator:
    """Check a value part by part and collect its faults."""

    def __init__(self, value: dict[str, Any]):
        self.value = value
        self.problems: list[str] = []

    def add_problem(self, path: str, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            # A name may contain half of a surrogate pair, which no page can show.
            self.problems.append(f"{path}: {text}".encode("utf-8", "replace").decode())

    def listed_rows_with_paths(self, value: dict[str, Any], name: str, path: str = "") -> list[tuple[str, Any]]:
        listed = value.get(name)
        where = f"{path}.{name}" if path else name
        if not isinstance(listed, list):
            self.add_problem(where, "must be a list." if name in value else "is missing.")
            return []
        return [(f"{where}[{number}]", row) for number, row in enumerate(listed)]

    def check_object(self, value: Any, path: str, names: tuple[str, ...]) -> bool:
        """Return whether the value is an object with exactly these names."""
        if not isinstance(value, dict):
            self.add_problem(path, "must be an object.")
            return False
        unknown, missing = sorted(set(value) - set(names)), sorted(set(names) - set(value))
        for name in unknown:
            self.add_problem(
                f"{path}.{name[:80]}" if path else name[:80],
                f"is not allowed here. {advice_on_unknown_name(name, missing)}",
            )
        for name in missing:
            self.add_problem(f"{path}.{name}" if path else name, "is missing.")
        return not (unknown or missing)

    def check_columns(
        self, model: type[models.Model], value: dict[str, Any], names: tuple[str, ...], path: str
    ) -> dict[str, Any]:
        """Return the values of these columns, each with the type, length and choice of its column."""
        fields = {name: model._meta.get_field(name) for name in names}
        return {
            name: self.check_column(field, value[name], f"{path}.{name}")
            for name, field in fields.items()
            if isinstance(field, models.Field)
        }

    def check_column(self, field: models.Field, value: Any, path: str) -> Any:
        try:
            value = json_to_column_value(field, value, path)
            if isinstance(field, models.JSONField):
                check_json_is_storable(value, path)
                return value
            return field.clean(value, None)
        except ValueRefused as refused:
            self.add_problem(refused.path, refused.text)
        except ValidationError as error:
            self.add_problem(path, " ".join(error.messages))
        return None

    def check_reference(self, value: Any, known: Any, path: str, noun: str) -> Any:
        """Return the value if it is one of the known names or numbers, or None."""
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in known:
            self.add_problem(path, f"there is no {noun} {value!r:.60}.")
            return None
        return value

    def check_references(self, value: Any, known: Any, path: str, noun: str) -> list[Any]:
        if not isinstance(value, list):
            self.add_problem(path, "must be a list.")
            return []
        for number, name in enumerate(value):
            self.check_reference(name, known, f"{path}[{number}]", noun)
        if not self.problems and len(set(value)) < len(value):
            self.add_problem(path, "contains the same name twice.")
        return value

    def check_unique(self, seen: set, name: Any, path: str) -> None:
        if name is None:  # refused already
            return
        key = name_key(name) if isinstance(name, str) else name
        if key in seen:
            self.add_problem(path, f"{name!r:.60} occurs twice (names must differ in more than case and blanks).")
        seen.add(key)

    def raise_if_problems(self) -> None:
        if self.problems:
            raise BundleRefused(self.problems)


# Check the design in a bundle: study, systems, arms, sections, questions, contrasts and rules.


def _without_flag(system: Any) -> Any:
    """Convert a system of an older bundle: ``is_reference`` means the ordinary kind of reference."""
    if isinstance(system, dict) and "reference" not in system and isinstance(system.get("is_reference"), bool):
        system = system | {"reference": "reference" if system["is_reference"] else ""}
        del system["is_reference"]
    return system


class DesignValidator(BaseValidator):
    """Check the design, and store its rows as columns by name or position."""

    def check_study(self) -> None:
        study = self.value["study"]
        self.study: dict[str, Any] = {}
        if isinstance(study, dict):
            study = LATER_STUDY_FIELDS | study
        names = (*STUDY_FIELDS, *LATER_STUDY_FIELDS)
        if not self.check_object(study, "study", names):
            return
        self.study = self.check_columns(Study, study, names, "study")
        if study["preparation"]:
            try:
                Preparation.from_json(study["preparation"])
            except SettingsRefused as refused:
                self.add_problem("study.preparation", str(refused))
        target, cap = self.study["target_n"], self.study["target_cap"]
        if target and cap and cap < target:
            self.add_problem("study.target_cap", "must not be below target_n.")

    def check_systems_and_arms(self) -> None:
        self.systems: dict[str, dict[str, Any]] = {}
        seen: set = set()
        for path, row in self.listed_rows_with_paths(self.value, "systems"):
            row = _without_flag(row)
            if self.check_object(row, path, SYSTEM_FIELDS):
                columns = self.check_columns(System, row, SYSTEM_FIELDS, path)
                self.check_unique(seen, columns["name"], f"{path}.name")
                self.systems[columns["name"]] = columns
        self.arms: dict[str, tuple[dict[str, Any], list[str]]] = {}
        seen = set()
        for path, row in self.listed_rows_with_paths(self.value, "arms"):
            if self.check_object(row, path, (*ARM_FIELDS, "systems")):
                columns = self.check_columns(Arm, row, ARM_FIELDS, path)
                self.check_unique(seen, columns["name"], f"{path}.name")
                system_names = self.check_references(row["systems"], self.systems, f"{path}.systems", "system")
                self.arms[columns["name"]] = columns, system_names

    def check_sections(self) -> None:
        self.sections: dict[int, dict[str, Any]] = {}
        rows = self.listed_rows_with_paths(self.value, "sections")
        positions = {
            row["position"] for _, row in rows if isinstance(row, dict) and isinstance(row.get("position"), int)
        }
        seen: set = set()
        for path, row in rows:
            test_fields = TEST_FIELDS if isinstance(row, dict) and "pass_mark" in row else ()
            if not self.check_object(row, path, (*SECTION_FIELDS, *test_fields, "reuses", "arms", "questions")):
                continue
            columns = self.check_columns(Section, row, SECTION_FIELDS, path)
            self.check_unique(seen, columns["position"], f"{path}.position")
            if row["reuses"] is not None:
                self.check_reference(
                    row["reuses"], [p for p in positions if p != row["position"]], f"{path}.reuses", "other section"
                )
            protocol = REGISTRY.get(columns["protocol"])
            if protocol is not None:
                self._check_settings(protocol.settings_form, row["settings"], f"{path}.settings")
            self.sections[row["position"] if isinstance(row["position"], int) else -1] = {
                "columns": columns,
                "reuses": row["reuses"],
                "arms": self.check_references(row["arms"], self.arms, f"{path}.arms", "arm"),
                "questions": self._questions(row, path),
                "test": self._test(row, path) if test_fields else {},
            }
        tests = [position for position, row in self.sections.items() if row["test"]]
        if len(tests) > 1:
            self.add_problem("sections", "only one section of a study can have a pass_mark.")

    def _test(self, section: dict[str, Any], path: str) -> dict[str, Any]:
        """Return the pass mark of a test, and the name and validity of its qualification."""
        columns = self.check_columns(Section, section, ("pass_mark",), path)
        if columns["pass_mark"] is None:
            self.add_problem(f"{path}.pass_mark", "must be a number. Leave it out if the section is no test.")
        if section["purpose"] not in (Section.Purpose.TRAINING, Section.Purpose.SCREENING):
            self.add_problem(f"{path}.pass_mark", "is only for the purposes training and screening.")
        named = section["qualification"]
        where = f"{path}.qualification"
        if named is not None and self.check_object(named, where, QUALIFICATION_FIELDS):
            columns["qualification"] = self.check_columns(Qualification, named, QUALIFICATION_FIELDS, where)
        return columns

    def _questions(self, section: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
        questions: dict[str, dict[str, Any]] = {}
        keys: set = set()
        positions: set = set()
        for where, row in self.listed_rows_with_paths(section, "questions", path):
            if not self.check_object(row, where, (*QUESTION_FIELDS, "x", "y")):
                continue
            columns = self.check_columns(Question, row, QUESTION_FIELDS, where)
            self._check_scale(row["scale"], f"{where}.scale")
            self._check_skip_reasons(row["skip_reasons"], f"{where}.skip_reasons")
            self.check_unique(keys, columns["key"], f"{where}.key")
            self.check_unique(positions, columns["position"], f"{where}.position")
            x, y = self._pair(row, where)
            questions[str(columns["key"])] = columns | {"x": x, "y": y}
        return questions

    def _check_scale(self, scale: Any, path: str) -> None:
        if not isinstance(scale, dict):
            return  # reported already
        kinds = {
            "kind": str, "minimum": int, "maximum": int, "low": str, "middle": str, "high": str, "labels": list, "options": list,
            "minimum_length": int, "maximum_length": int, "is_long": bool, "is_best_first": bool,
            "is_lower_better": bool,
        }  # fmt: skip
        type_labels = {str: "a text", int: "a whole number", list: "a list", bool: "true or false"}
        before = len(self.problems)
        for name, value in scale.items():
            kind = kinds.get(name)
            if kind is None:
                self.add_problem(f"{path}.{name[:80]}", "is not a part of a scale.")
            elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                self.add_problem(f"{path}.{name}", f"must be {type_labels[kind]}.")
        if len(self.problems) > before:
            return
        for number, label in enumerate(scale.get("labels", [])):
            if not isinstance(label, str):
                self.add_problem(f"{path}.labels[{number}]", "must be a text.")
        for number, option in enumerate(scale.get("options", [])):
            where = f"{path}.options[{number}]"
            if not isinstance(option, dict) or not {"key", "label"} <= set(option) <= {"key", "label", *OPTION_FLAGS}:
                self.add_problem(where, "must be an object with key, label and perhaps screens_out or is_right.")
            elif not (isinstance(option["key"], str) and isinstance(option["label"], str)):
                self.add_problem(where, "key and label must be texts.")
            else:
                for flag in OPTION_FLAGS:
                    if not isinstance(option.get(flag, False), bool):
                        self.add_problem(f"{where}.{flag}", "must be true or false.")
        if len(self.problems) == before:
            try:
                parse_scale(scale)
            except ValueError as error:
                is_unknown_kind = scale.get("kind", "percent") not in SCALE_KINDS
                self.add_problem(f"{path}.kind" if is_unknown_kind else path, str(error))

    def _check_skip_reasons(self, reasons: Any, path: str) -> None:
        if not isinstance(reasons, list):
            self.add_problem(path, "must be a list.")
            return
        for number, reason in enumerate(reasons):
            has_names = isinstance(reason, dict) and set(reason) == {"key", "label"}
            if not has_names or not all(isinstance(part, str) and part for part in reason.values()):
                self.add_problem(f"{path}[{number}]", "must be an object with the texts key and label.")

    def _check_settings(self, form: type | None, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            return  # reported already
        known = set(form().fields) if form is not None else set()
        for name in sorted(set(value) - known):
            known_text = f"; the settings are {', '.join(sorted(known))}" if known else ""
            self.add_problem(f"{path}.{name[:80]}", f"is not a setting{known_text}.")

    def _pair(self, row: dict[str, Any], path: str) -> tuple[str | None, str | None]:
        x, y = row["x"], row["y"]
        for name, value in (("x", x), ("y", y)):
            if value is not None:
                self.check_reference(value, self.systems, f"{path}.{name}", "system")
        if (x is None) != (y is None):
            self.add_problem(path, "must have both x and y, or neither.")
        elif x is not None and x == y:
            self.add_problem(f"{path}.y", "must be another system than x.")
        return x, y

    def check_contrasts_and_rules(self) -> None:
        self.contrasts: list[dict[str, Any]] = []
        seen: set = set()
        for path, row in self.listed_rows_with_paths(self.value, "contrasts"):
            if isinstance(row, dict):
                row = LATER_CONTRAST_FIELDS | row
            names = (*CONTRAST_FIELDS, *LATER_CONTRAST_FIELDS)
            if not self.check_object(row, path, (*names, "section", "x", "y")):
                continue
            columns = self.check_columns(Contrast, row, names, path)
            x, y = self._pair(row, path)
            if row["section"] is not None:
                self.check_reference(row["section"], self.sections, f"{path}.section", "section")
            conditions = (columns["x_condition"], columns["y_condition"])
            if bool(conditions[0]) != bool(conditions[1]) or (conditions[0] and (conditions[0] == conditions[1] or x)):
                self.add_problem(path, "must compare two systems, or two different conditions, or neither.")
            if columns["margin"] == 0:
                self.add_problem(f"{path}.margin", "must be above 0, or null.")
            pair = frozenset(map(repr, (x, y))) if x else frozenset(conditions)
            same = (row["section"], columns["estimand"], columns["criterion"], pair) if x or conditions[0] else object()
            if same in seen:
                self.add_problem(path, "occurs twice, perhaps reversed.")
            seen.add(same)
            self.contrasts.append(columns | {"x": x, "y": y, "section": row["section"]})
        if not self.problems:  # scales are readable
            self._check_margins()
        self._check_families()
        self.rules: list[dict[str, Any]] = []
        named: set = set()
        for path, row in self.listed_rows_with_paths(self.value, "exclusion_rules"):
            if self.check_object(row, path, RULE_FIELDS):
                columns = self.check_columns(ExclusionRule, row, RULE_FIELDS, path)
                self.check_unique(named, columns["rule"], f"{path}.rule")
                if columns["rule"] in RULES and RULES[columns["rule"]].settings_form is not None:
                    self._check_settings(RULES[columns["rule"]].settings_form, row["settings"], f"{path}.settings")
                self.rules.append(columns)

    def _check_families(self) -> None:
        self.families: list[dict[str, Any]] = []
        seen: set = set()
        for path, row in self.listed_rows_with_paths(self.value, "comparison_families"):
            if self.check_object(row, path, FAMILY_FIELDS):
                columns = self.check_columns(ComparisonFamily, row, FAMILY_FIELDS, path)
                self.check_unique(seen, columns["name"], f"{path}.name")
                self.families.append(columns)
        if fault := order_fault({row["name"]: row["after"] for row in self.families}):
            self.add_problem("comparison_families", fault)

    def _check_margins(self) -> None:
        sections = [
            (Section(**part["columns"]), [_unsaved_question(columns) for columns in part["questions"].values()])
            for part in self.sections.values()
            if part["columns"]["purpose"] == Section.Purpose.LIVE
        ]
        for number, contrast in enumerate(self.contrasts):
            own_sections = [pair for pair in sections if contrast["section"] in (None, pair[0].position)]
            if too_wide := too_wide_margin_problem(
                contrast["margin"], contrast["estimand"], contrast["criterion"], own_sections
            ):
                self.add_problem(f"contrasts[{number}].margin", too_wide.text)
            if contradiction := hypothesis_problem(
                contrast["hypothesis"],
                margin=contrast["margin"],
                has_systems=contrast["x"] is not None,
                expected=contrast["expected"],
                estimand=contrast["estimand"],
                criterion=contrast["criterion"],
                sections=own_sections,
            ):
                self.add_problem(f"contrasts[{number}].{contradiction[0]}", contradiction[1].text)


def _unsaved_question(columns: dict[str, Any]) -> Question:
    return Question(**{name: columns[name] for name in QUESTION_FIELDS})


def check_stored_image(name: str, data: bytes) -> None:
    """Check that an image is as heval stores it: its format and its name. Raises ImageRefused."""
    # "VP8 " directly after the header: one lossy frame and nothing else, as heval encodes images.
    if data[:4] != b"RIFF" or data[8:16] != b"WEBPVP8 " or sha256(data).hexdigest() + EXTENSION != name:
        raise ImageRefused(
            "is not an image as heval stores it (WebP, named by its sha256). Import images in a zip instead."
        )
    encode_image(data)


# Check a whole bundle, in the order in which its parts refer to each other.


class BundleValidator(DesignValidator):
    """Check a whole bundle and collect its faults."""

    def check(self) -> None:
        value = self.value
        if not isinstance(value, dict):
            raise BundleRefused(["The bundle must be an object."])
        if value.get("schema") != SCHEMA:
            raise BundleRefused([f"schema: must be {SCHEMA}, not {value.get('schema')!r:.60}."])
        # Bundles of designs without declared families, and those made before there were any, do not have them.
        # Those of studies with the words of heval have no translation.
        self.value = value = {"comparison_families": [], "translation": None} | value
        self.check_object(value, "", (
            "schema", "study", "systems", "arms", "sections", "contrasts", "comparison_families", "exclusion_rules", "prompts", "outputs", "items",
            "batches", "images", "translation",
        ))  # fmt: skip
        self.raise_if_problems()
        self.check_study()
        self._check_translation()
        self.check_systems_and_arms()
        self.check_sections()
        self.check_contrasts_and_rules()
        self.raise_if_problems()  # stimuli refer to systems, and there are many of them
        self._check_images()
        self._check_stimuli()
        self.raise_if_problems()
        self._check_items_and_batches()
        self.raise_if_problems()

    def _check_translation(self) -> None:
        """Check the words that a researcher brought, in their language. An upload has the same checks."""
        row = self.value["translation"]
        self.translation: tuple[str, str] | None = None
        if row is None or not self.check_object(row, "translation", TRANSLATION_FIELDS):
            return
        columns = self.check_columns(Translation, row, TRANSLATION_FIELDS, "translation")
        if None in columns.values():
            return
        try:
            self.translation = read_file(columns["text"].encode(), columns["language"])
        except FileRefused as refused:
            for problem in refused.problems.first:
                self.add_problem("translation.text", problem.text)

    def _check_images(self) -> None:
        self.images: dict[str, bytes] = {}
        images = self.value["images"]
        if not isinstance(images, dict):
            self.add_problem("images", "must be an object of base64 by name.")
            return
        for name, text in images.items():
            path = f"images.{name[:80]}"
            try:
                data = b64decode(text if isinstance(text, str) else "", validate=True)
                check_stored_image(name, data)
                self.images[name] = data
            except (Base64Error, ValueError) as error:
                self.add_problem(path, str(error) if isinstance(error, ImageRefused) else "is not base64.")

    def _check_stimuli(self) -> None:
        self.prompts: dict[str, dict[str, Any]] = {}
        seen: set = set()
        for path, row in self.listed_rows_with_paths(self.value, "prompts"):
            if isinstance(row, dict):
                row = {"group": ""} | row
            if self.check_object(row, path, PROMPT_FIELDS):
                columns = self.check_columns(Prompt, row, PROMPT_FIELDS, path)
                self.check_unique(seen, columns["key"], f"{path}.key")
                self._check_media(columns["media"], path)
                self.prompts[str(columns["key"])] = columns
        self.outputs: dict[tuple[str, str, int], dict[str, Any]] = {}
        for path, row in self.listed_rows_with_paths(self.value, "outputs"):
            if isinstance(row, dict):  # bundles that were written before there were warnings
                row = {"warning": ""} | row
            if not self.check_object(row, path, (*OUTPUT_FIELDS, "system", "prompt")):
                continue
            columns = self.check_columns(Output, row, OUTPUT_FIELDS, path)
            system = self.check_reference(row["system"], self.systems, f"{path}.system", "system")
            prompt = self.check_reference(row["prompt"], self.prompts, f"{path}.prompt", "prompt")
            self._check_media(columns["media"], path)
            if bool(columns["text"]) + bool(columns["media"]) + bool(columns["is_empty"]) != 1:
                self.add_problem(path, "must have exactly one of text, media and is_empty.")
            key = (system, prompt, columns["sample"])
            if key in self.outputs:
                self.add_problem(path, f"{system} on {prompt}, sample {columns['sample']}, occurs twice.")
            self.outputs[key] = columns

    def _check_media(self, name: Any, path: str) -> None:
        if name and name not in self.images:
            self.add_problem(f"{path}.media", f"the image {name!r:.80} is not among images.")

    def _check_items_and_batches(self) -> None:
        self.items: dict[tuple[int, int], dict[str, Any]] = {}
        contents: set = set()
        for path, row in self.listed_rows_with_paths(self.value, "items"):
            if isinstance(row, dict):  # bundles that were written before there were types of test questions
                row = {"test_type": ""} | row
            if not self.check_object(row, path, (*ITEM_FIELDS, "section", "prompt", "outputs", "expected")):
                continue
            columns = self.check_columns(Item, row, ITEM_FIELDS, path)
            section = self.check_reference(row["section"], self.sections, f"{path}.section", "section")
            prompt = self.check_reference(row["prompt"], self.prompts, f"{path}.prompt", "prompt")
            outputs = self._item_outputs(row, path)
            if columns["test_type"] and columns["kind"] != Item.Kind.TEST:
                self.add_problem(f"{path}.test_type", "must be empty unless kind is test.")
            content = (section, prompt, columns["kind"], tuple(sorted(map(str, outputs))))
            if (section, columns["number"]) in self.items or content in contents:
                self.add_problem(path, "another item of the section has the same number or the same content.")
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
        for path, row in self.listed_rows_with_paths(self.value, "batches"):
            if not self.check_object(row, path, (*BATCH_FIELDS, "arm", "items")):
                continue
            columns = self.check_columns(Batch, row, BATCH_FIELDS, path)
            self.check_reference(row["arm"], self.arms, f"{path}.arm", "arm")
            self.check_unique(numbers, columns["number"], f"{path}.number")
            if columns["key"]:
                self.check_unique(keys, columns["key"], f"{path}.key")
            item_keys = []
            for where, key in self.listed_rows_with_paths(row, "items", path):
                is_key = isinstance(key, list) and all(type(part) is int for part in key)
                if is_key and tuple(key) in self.items:
                    item_keys.append(tuple(key))
                else:
                    self.add_problem(where, "must be [section, number] of one of items.")
            if len(set(item_keys)) < len(item_keys):
                self.add_problem(f"{path}.items", "an item occurs twice.")
            self.batches.append(columns | {"arm": row["arm"], "items": item_keys})

    def _item_outputs(self, row: dict[str, Any], path: str) -> list[tuple[str, str, int]]:
        keys = []
        for where, key in self.listed_rows_with_paths(row, "outputs", path):
            is_key = isinstance(key, list) and len(key) == 3 and all(isinstance(part, str | int) for part in key)
            if not is_key or tuple(key) not in self.outputs:
                self.add_problem(where, "must be [system, prompt, sample] of one of outputs.")
            else:
                keys.append(tuple(key))
        if len(set(keys)) < len(keys):
            self.add_problem(f"{path}.outputs", "an output occurs twice.")
        return keys

    def _expected(self, row: dict[str, Any], path: str, section: Any, exposures: int) -> list[dict[str, Any]]:
        # Known answers may also be about questions of sections that repeat the items; of equal keys the first counts.
        asked_in = {
            key: position
            for position in sorted(self.sections, key=lambda position: (position == section, -position))
            if position == section or self.sections[position]["reuses"] == section
            for key in self.sections[position]["questions"]
        }
        expected: list[dict[str, Any]] = []
        seen: set = set()
        for where, answer in self.listed_rows_with_paths(row, "expected", path):
            if isinstance(answer, dict):
                answer = {"about": None} | answer
            if not self.check_object(answer, where, (*EXPECTED_FIELDS, "question", "exposure", "about")):
                continue
            columns = self.check_columns(Expected, answer, EXPECTED_FIELDS, where)
            question = self.check_reference(
                answer["question"], asked_in, f"{where}.question", "question of this section"
            )
            self.check_unique(seen, question, f"{where}.question")
            exposure, low, high = answer["exposure"], columns["low"], columns["high"]
            is_range = low is not None and high is not None and low <= high and exposure is None
            is_exposure = low is None and high is None and type(exposure) is int and 0 <= exposure < exposures
            if not (is_range or is_exposure):
                self.add_problem(where, "must be a range from low to high, or the number of an exposure.")
            about = answer["about"]
            if about is not None and not (is_range and type(about) is int and 0 <= about < exposures):
                self.add_problem(f"{where}.about", "must be null, or the number of an exposure beside a range.")
            asked = asked_in.get(question), question
            expected.append(columns | {"question": asked, "exposure": exposure, "about": about})
        return expected
