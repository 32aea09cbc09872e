"""The analysis of a protocol, of rows that a test made up."""

from analysis.protocols import REGISTRY, AnalysisContext, StartedAnalysis
from analysis.protocols.families import adjust_comparisons


def analysed(protocol, rows, sections, **settings):
    made = {"seed": "00", "resamples": 199} | settings
    context = AnalysisContext(protocol=protocol, rows=rows, sections=sections, **made)
    analysis = StartedAnalysis(REGISTRY[protocol], context)
    return analysis.finish(adjust_comparisons(analysis.compared, {}, star_scheme=context.star_scheme))


def block(blocks, name, mode="recommended"):
    return next(one for one in blocks if one.name == name and one.mode == mode)
