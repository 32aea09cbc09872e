"""API views of the words of a study's pages, and of the file that brings another language."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView
from rest_framework.response import Response

from studies.design.translations import Words, words_file, words_file_name, words_of
from studies.services.translation_files import MAX_FILE_BYTES, remove_file, use_file

from .base import StudyView, download_response
from .serializers import CleanTextField, StrictMixin


class TranslationSerializer(serializers.Serializer):
    """The words of a study's pages."""

    study_language = serializers.CharField(help_text="The language of the study's texts.")
    language = serializers.CharField(help_text="The language of the words: en, if there is no translation.")
    origin = serializers.ChoiceField(choices=["heval", "file"], help_text="file: somebody brought a file.")
    version = serializers.CharField(
        allow_null=True, help_text="The sha256 of the words. null: launched before studies kept their words."
    )
    is_kept = serializers.BooleanField(help_text="Since the launch, so they do not change any more.")
    messages = serializers.IntegerField(help_text="How many messages the pages have in this release.")
    untranslated = serializers.IntegerField(help_text="How many of them have no translation.")
    translated_by = serializers.CharField(allow_blank=True, help_text="Or who brought the file. Empty for English.")
    read_by = serializers.CharField(allow_blank=True, help_text="Who has read a translation of heval.")


class WordsFileSerializer(StrictMixin, serializers.Serializer):
    file = CleanTextField(max_length=MAX_FILE_BYTES, help_text="The text of a PO file, translated.")


class TranslationView(StudyView, RetrieveAPIView):
    """The words around a study's texts on annotators' pages. PUT gives a draft a PO file of them, and DELETE those of heval again."""

    summaries = {
        "GET": "The words of a study's pages",
        "PUT": "Give a draft a file of words",
        "DELETE": "Remove the file of words of a draft",
    }
    serializer_class = TranslationSerializer
    body_serializer_class = WordsFileSerializer
    result_of_delete = TranslationSerializer

    def get_object(self) -> Words:
        return words_of(self.study)

    def put(self, request, code) -> Response:
        file = self.read_body()["file"]
        return self.answer(words_of(use_file(self.study, file.encode(), request.user)))

    def delete(self, request, code) -> Response:
        return self.answer(words_of(remove_file(self.study, request.user)))


class WordsFileView(StudyView):
    """A PO file to translate: all messages of annotators' pages, with the words that this study has now."""

    summaries = {"GET": "The file of words of a study's pages"}
    media_type: Any = "text/x-gettext-translation"
    response_type = OpenApiTypes.STR

    def get(self, request, code):
        text = words_file(self.study).encode()
        return download_response([text], words_file_name(self.study), f"{self.media_type}; charset=utf-8")
