"""Check a whole bundle, in the order in which its parts refer to each other."""

from base64 import b64decode
from binascii import Error as Base64Error
from hashlib import sha256
from typing import Any

from studies.models import Batch, Expected, Item, Output, Prompt
from studies.stimuli.images import EXTENSION, ImageRefused, encode_image

from .design import DesignValidator
from .schema import BATCH_FIELDS, EXPECTED_FIELDS, ITEM_FIELDS, OUTPUT_FIELDS, PROMPT_FIELDS, SCHEMA, BundleRefused


class BundleValidator(DesignValidator):
    """Check a whole bundle and collect its faults."""

    def check(self) -> None:
        value = self.value
        if not isinstance(value, dict):
            raise BundleRefused(["The bundle must be an object."])
        if value.get("schema") != SCHEMA:
            raise BundleRefused([f"schema: must be {SCHEMA}, not {value.get('schema')!r:.60}."])
        # Bundles of designs without declared families, and those made before there were any, do not have them.
        self.value = value = {"comparison_families": []} | value
        self.check_object(value, "", (
            "schema", "study", "systems", "arms", "sections", "contrasts", "comparison_families", "exclusion_rules", "prompts", "outputs", "items",
            "batches", "images",
        ))  # fmt: skip
        self.raise_if_problems()
        self.check_study()
        self.check_systems_and_arms()
        self.check_sections()
        self.check_contrasts_and_rules()
        self.raise_if_problems()  # stimuli refer to systems, and there are many of them
        self._check_images()
        self._check_stimuli()
        self.raise_if_problems()
        self._check_items_and_batches()
        self.raise_if_problems()

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
                # "VP8 " directly after the header: one lossy frame and nothing else, as heval encodes images.
                if data[:4] != b"RIFF" or data[8:16] != b"WEBPVP8 " or sha256(data).hexdigest() + EXTENSION != name:
                    self.add_problem(
                        path,
                        "is not an image as heval stores it (WebP, named by its sha256). Import images in a zip instead.",
                    )
                    continue
                encode_image(data)
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
        questions = self.sections[section]["questions"] if section in self.sections else {}
        expected: list[dict[str, Any]] = []
        seen: set = set()
        for where, answer in self.listed_rows_with_paths(row, "expected", path):
            if isinstance(answer, dict):
                answer = {"about": None} | answer
            if not self.check_object(answer, where, (*EXPECTED_FIELDS, "question", "exposure", "about")):
                continue
            columns = self.check_columns(Expected, answer, EXPECTED_FIELDS, where)
            question = self.check_reference(
                answer["question"], questions, f"{where}.question", "question of this section"
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
            expected.append(columns | {"question": question, "exposure": exposure, "about": about})
        return expected
