"""Evaluations of translations and summaries: submissions, MQM tables and Appraise files of WMT, and SummEval."""

import io
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, BinaryIO
from xml.parsers import expat

from studies.protocols.marks import ERRORS, split_sentences
from studies.stimuli.lines import BinaryReader, RowRefused, UnreadableFile

_MARK = re.compile(r"</?v>")


class Mqm:
    """Error spans of WMT's MQM evaluations (TSV): a row for each marked error. As texts, each translation counts once, without its marks."""

    NAME = "an MQM table of WMT; a translation with several rows counts once, and its marks are left out of its text"
    COLUMNS = ("system", "source", "target", "category", "severity")
    # The weights of WMT. A study of error marks must have them in its list.
    WEIGHTS = {"minor": "1", "major": "5", "critical": "25"}

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return all(name in values for name in Mqm.COLUMNS) and any(
            name in values for name in ("seg_id", "globalSegId", "doc_id")
        )

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        document, key = Mqm.place(values)
        seen = state.setdefault("seen", set())
        if (values["system"], key) in seen:
            return
        seen.add((values["system"], key))
        yield {
            "prompt_key": key,
            "prompt_text": "",
            "source": _MARK.sub("", str(values["source"])),
            "group:document": document,
            "system": values["system"],
            "text": _MARK.sub("", str(values["target"])),
        }

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        row = {"annotator": values.get("rater") or "", "prompt_key": Mqm.place(values)[1], "system": values["system"]}
        row["question"] = ERRORS
        severity, category = (str(values[name]).strip().lower().replace(" ", "-") for name in ("severity", "category"))
        if severity == "neutral":
            state["left_out"] += 1
            return
        if "no-error" in (severity, category):
            yield row | {"value": "0"}
            return
        if severity not in Mqm.WEIGHTS:
            raise RowRefused("severity", f"must be minor, major, critical, neutral or no-error, not “{severity[:40]}”.")
        yield row | {
            "value": Mqm.WEIGHTS[severity],
            "choice": re.split(r"[/!]", category)[0],
            "part": _part(str(values["target"])),
        }

    @staticmethod
    def place(values: Mapping[str, Any]) -> tuple[str, str]:
        document = str(values.get("doc") or values.get("doc_id") or "")
        segment = str(values.get("seg_id") or values.get("globalSegId") or values.get("doc_id") or "")
        return document, f"{document}:{segment}" if document and segment != document else segment


def _part(marked: str) -> str:
    """Return the place of a mark as heval writes it: the sentence, and the characters in it. A mark ends with its sentence."""
    before, start_tag, rest = marked.partition("<v>")
    if not start_tag:
        return "0"
    start, length = len(_MARK.sub("", before)), len(_MARK.sub("", rest.partition("</v>")[0]))
    return part_of(_MARK.sub("", marked), start, length)


def part_of(text: str, start: int, length: int) -> str:
    """Return the place of some characters of a text as heval writes it."""
    end = 0
    for sentence in split_sentences(text):
        begin = end + len(sentence.gap)
        end = begin + len(sentence.text)
        if start < end:
            first, last = max(start, begin) - begin, min(start + length, end) - begin
            return f"{sentence.number}:{first}-{last}" if last > first else str(sentence.number)
    return "0"


class Appraise:
    """Scores that Appraise exports (CSV without a header): one person's score of one segment of one system."""

    NAME = "scores of Appraise; items of its quality control and scores of whole documents were left out"
    COLUMNS = ("appraise_user", "system", "segment", "type", "source_language", "target_language", "score", "document", "is_document", "start", "end")  # fmt: skip
    TYPES = ("TGT", "BAD", "REF", "CHK")
    _LINE = re.compile(
        r"[^,\r\n]+,[^,\r\n]+,[^,\r\n]+,(?:TGT|BAD|REF|CHK),[a-z]{3},[a-z]{3},-?[0-9.]+(?P<more>(?:,[^\r\n]*)?)\r?\n?"
    )

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return {"appraise_user", "segment", "score"} <= values.keys()

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        raise UnreadableFile(
            None, "The file holds scores of Appraise and no texts. Import the texts first, and these as answers."
        )

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if values["type"] not in ("TGT", "REF") or values.get("is_document") == "True":
            state["left_out"] += 1
            return
        document = values.get("document") or ""
        row = {"annotator": values["appraise_user"], "system": values["system"], "value": values["score"]}
        yield row | {"prompt_key": f"{document}:{values['segment']}" if document else values["segment"]}

    @staticmethod
    def headed(stream: BinaryIO) -> BinaryReader:
        """Return a file with a header above it, if it is one of Appraise."""
        line = stream.readline(2_000).decode("utf-8", "replace").removeprefix("\ufeff")
        stream.seek(0)
        if not (found := Appraise._LINE.fullmatch(line)):
            return stream
        n = 7 + found["more"].count(",")
        names = [*Appraise.COLUMNS[:n], *(f"more_{number}" for number in range(len(Appraise.COLUMNS) + 1, n + 1))]
        return _Chained(io.BytesIO((",".join(names) + "\n").encode()), stream)


class _Chained:
    def __init__(self, *streams: BinaryIO) -> None:
        self._streams = streams

    def read(self, size: int, /) -> bytes:
        return next((part for stream in self._streams if (part := stream.read(size))), b"")


class SummEval:
    """Annotated summaries of SummEval: of each, the ratings of three experts and of five people of a crowd."""

    NAME = (
        "summaries of SummEval; experts are numbered by their place in the list. Ratings of the crowd were left out, because the file "
        "does not say who gave them"
    )

    @staticmethod
    def is_row(values: Mapping[str, Any]) -> bool:
        return {"decoded", "model_id"} <= values.keys() and bool({"expert_annotations", "references"} & values.keys())

    @staticmethod
    def rows_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        base = {
            "prompt_key": str(values["id"]),
            "prompt_text": "",
            "source": values.get("text") or values.get("source") or "",
        }
        references = values.get("references") or []
        if references and values["id"] not in state.setdefault("seen", set()):
            state["seen"].add(values["id"])
            yield base | {"system": "reference", "text": references[0]}
        yield base | {"system": values["model_id"], "text": values["decoded"]}

    @staticmethod
    def answers_of_row(values: Mapping[str, Any], state: dict[str, Any]) -> Iterator[dict[str, Any]]:
        state["left_out"] += sum(map(len, values.get("turker_annotations") or []))
        for number, ratings in enumerate(values["expert_annotations"], 1):
            for question, value in ratings.items():
                row = {"annotator": f"expert {number}", "prompt_key": str(values["id"]), "system": values["model_id"]}
                yield row | {"question": question, "value": value}


class WmtXml:
    """Test sets and submissions of WMT since 2021 (XML): documents with source, references and the translations of systems."""

    NAME = "translations of WMT (XML)"
    START = re.compile(rb"\s*(?:<[?!].*)?<dataset\b", re.DOTALL)

    @staticmethod
    def objects(stream: BinaryReader, max_bytes: int) -> list[dict[str, Any]]:
        """Return a row for each segment of each system. Raise UnreadableFile for a file of another form."""
        reader = _WmtReader()
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = reader.begin, reader.end
        parser.CharacterDataHandler = reader.add_text
        parser.EntityDeclHandler = reader.refuse_entities
        size = 0
        try:
            while chunk := stream.read(1 << 18):
                size += len(chunk)
                if size > max_bytes:
                    raise UnreadableFile(None, f"The XML has more than {max_bytes:,} bytes. Split it.")
                parser.Parse(chunk)
            parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            line = parser.CurrentLineNumber
            raise UnreadableFile(None, f"line {line}: the XML is damaged or cut off. Send the file again.") from error
        if not reader.rows:
            raise UnreadableFile(
                None, "The file has no segment of a source or system. Send a test set or submission of WMT."
            )
        return reader.rows


class _WmtReader:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._document, self._language, self._role = "", "", ("", "")
        self._segment: str | None = None
        self._text: list[str] = []
        self._sources: dict[str, str] = {}
        self._texts: list[tuple[str, str, str, str]] = []

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "doc":
            self._document, self._sources, self._texts = attributes.get("id", ""), {}, []
        elif tag in ("src", "ref", "hyp"):
            name = attributes.get("system") or attributes.get("translator") or ""
            self._role = (tag, {"src": "", "ref": f"reference {name}".strip(), "hyp": name}[tag])
            self._language = attributes.get("lang", "")
            if tag == "hyp" and not name:
                raise UnreadableFile(
                    None, f"document “{self._document}” has a translation without the name of its system. Name it."
                )
        elif tag == "seg":
            self._segment, self._text = attributes.get("id", ""), []

    def add_text(self, text: str) -> None:
        self._text.append(text)

    def refuse_entities(self, *declared: Any) -> None:
        raise UnreadableFile(None, "The XML declares entities, which heval does not read. Save it without them.")

    def end(self, tag: str) -> None:
        if tag == "seg" and self._segment is not None:
            text = "".join(self._text)
            if self._role[0] == "src":
                self._sources[self._segment] = text
            else:
                self._texts.append((self._segment, self._role[1], text, self._language))
            self._segment = None
        elif tag == "doc":
            unanswered = [
                (segment, "", "", "") for segment in self._sources if all(segment != text[0] for text in self._texts)
            ]
            for segment, system, text, language in chain(self._texts, unanswered):
                row = {"prompt_key": f"{self._document}:{segment}", "prompt_text": "", "group:document": self._document}
                row["source"] = self._sources.get(segment, "")
                self.rows.append(
                    row | ({"system": system, "text": text, "output_language": language} if system else {})
                )
