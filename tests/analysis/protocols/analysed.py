"""The analysis of a protocol, of rows that a test made up."""

from analysis.protocols import REGISTRY, AnalysisContext


def analysed(protocol, rows, sections, **settings):
    made = {"seed": "00", "resamples": 199} | settings
    return REGISTRY[protocol].analyse(AnalysisContext(protocol=protocol, rows=rows, sections=sections, **made))


def block(blocks, name, mode="recommended"):
    return next(one for one in blocks if one.name == name and one.mode == mode)
