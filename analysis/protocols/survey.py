"""Answers to surveys are stored and listed; nothing is estimated from them."""

from . import ProtocolAnalysis, register


@register
class SurveyAnalysis(ProtocolAnalysis):
    slug = "survey"

    def analyse(self, context):
        return []
