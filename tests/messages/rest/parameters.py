"""The lines of the parameters of addresses, exports and analyses."""

from unittest import mock

from tests.messages.lines import At
from tests.messages.rest.scenarios import launched, posts, reads, refuses


def without_pyarrow():
    with mock.patch("analysis.data.exports.find_spec", return_value=None):
        return posts("exports/", {"format": "parquet", "origins": ["robot"]}, make=launched)()


REST = {
    "This parameter must be an integer": At("page_size", reads("prompts/?page_size=x")),
    "This parameter must be a decimal": At("difference", reads("plans/numbers/?difference=nan")),
    "This parameter must be one of …. Correct": At("withdrawn", reads("responses/?withdrawn=2")),
    "This is not a cursor": At("cursor", reads("prompts/?cursor=x")),
    "This parameter …": At("domain", reads("prompts/?domain=")),
    "This parameter contains": At("domain", reads("prompts/?domain=a%0Ab")),
    "This parameter must be one or more of …, separated": At("origins", reads("responses/?origins=mars")),
    "This address has no such": At("page", reads("systems/?page=1")),
    "This parameter is given": At("page_size", reads("jobs/?page_size=1&page_size=2")),
    "request_export: … is not an origin": At("origins", posts("exports/", {"origins": ["mars"]})),
    "Parquet needs an optional": without_pyarrow,
    "The table … cannot be written": posts("exports/", {"format": "tsv", "origins": ["robot"]}, make=launched),
    "The table … never has people": posts(
        "exports/", {"table": "scores", "withdrawn": True, "origins": ["robot"]}, make=launched
    ),
    "origins: … is not an origin": posts("analyses/", {"origins": ["mars"]}, make=launched),
    "no form about this": At("horoscope", refuses("PATCH", "report-forms/", {"answers": {"horoscope": "Leo"}})),
    "there is no such": At("depth", posts("analyses/", {"depth": 1})),
    "must be a list of origins": posts("analyses/", {"origins": "live"}),
    "the list is empty. Name at least one origin": posts("analyses/", {"origins": []}),
    "is not accepted. Enter a number": posts("analyses/", {"level": 2}),
    "is not accepted. Enter an integer": posts("analyses/", {"resamples": 3}),
    "is not a star": posts("analyses/", {"star_scheme": "7"}),
    "is not accepted. Use a list": posts("analyses/", {"deltas": 0.01}),
    "the list has … values. Use at most": posts("analyses/", {"deltas": [0.1, 0.11, 0.12, 0.13, 0.14, 0.15]}),
}
