"""What analyses of protocols have in common, by what their answers are.

``pairs``: answers compare systems, so the report has a block of comparisons. ``scores``: answers are numbers for outputs.
``strengths``: a model of pairs gives each system a strength. ``answers`` prepares rows for all of them.
"""
