"""Check the design in a bundle: study, systems, arms, sections, questions, contrasts and rules."""

from typing import Any

from studies.design.families import order_fault
from studies.design.margins import hypothesis_problem, too_wide_margin_problem
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
    ComparisonFamily,
    Contrast,
    ExclusionRule,
    Qualification,
    Question,
    Section,
    Study,
    System,
)
from studies.models.rules import REGISTRY as RULES
from studies.protocols import REGISTRY
from studies.protocols.base.scales import OPTION_FLAGS, SCALE_KINDS, parse_scale
from studies.stimuli.normalising import Preparation, SettingsRefused

from .base_validator import BaseValidator
from .schema import QUALIFICATION_FIELDS, RULE_FIELDS, SECTION_FIELDS, SYSTEM_FIELDS, TEST_FIELDS


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
