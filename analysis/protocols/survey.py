"""Surveys: answers are stored and listed, but nothing is estimated from them."""

from . import ProtocolAnalysis, register


@register
class SurveyAnalysis(ProtocolAnalysis):
    slug = "survey"

    def analyse(self, context):
        return []
