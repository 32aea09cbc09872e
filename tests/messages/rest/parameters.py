"""The lines of the parameters of addresses, exports and analyses."""

from unittest import mock

from tests.messages.rest.scenarios import API, DATA, launched, posts, reads

VALUE = "Correct its value"


def without_pyarrow():
    with mock.patch("analysis.data.exports.find_spec", return_value=None):
        return posts("exports/", {"format": "parquet", "origins": ["robot"]}, make=launched)()


LINES = {
    f"{API}:read": [
        ("page_size: This parameter must be an integer from 1 to 1000", VALUE, reads("prompts/?page_size=x")),
        ("difference: This parameter must be a decimal number", VALUE, reads("plans/numbers/?difference=nan")),
        ("withdrawn: This parameter must be one of 0, 1", VALUE, reads("responses/?withdrawn=2")),
        ("cursor: This is not a cursor of this list", "Use the address in “next”", reads("prompts/?cursor=x")),
    ],
    f"{API}:parse_single_line": [
        ("domain: This parameter must not be empty", "Enter a text", reads("prompts/?domain=")),
        ("domain: This parameter contains a line break", "Send one line of text", reads("prompts/?domain=a%0Ab")),
    ],
    f"{API}:parse_origins": [
        ("origins: This parameter must be one or more of live, ", VALUE, reads("responses/?origins=mars")),
    ],
    f"{API}:read_query": [
        ("page: This address has no such parameter", "Remove it. Known parameters: cursor", reads("systems/?page=1")),
        ("page_size: This parameter is given more than once", "Send it once", reads("jobs/?page_size=1&page_size=2")),
    ],
    f"{DATA}:request_export": [
        ("origins: 'mars' is not an origin", "Use live, ", posts("exports/", {"origins": ["mars"]})),
        ("Parquet needs an optional package", "pip install 'pyarrow", without_pyarrow),
    ],
    f"{DATA}:validate_origins": [
        ("origins: 'mars' is not an origin", "Use live, ", posts("analyses/", {"origins": ["mars"]}, make=launched)),
    ],
    "analysis/report:validate_parameters": [
        ("depth: there is no such parameter", "Use origins, level", posts("analyses/", {"depth": 1})),
        ("origins: must be a list of origins", 'for example, ["live"]', posts("analyses/", {"origins": "live"})),
        ("origins: the list is empty", "Name at least one", posts("analyses/", {"origins": []})),
        ("level: 2 is not accepted", "Enter a number from 0.5 to below 1", posts("analyses/", {"level": 2})),
        ("resamples: 3 is not accepted", "Enter an integer from 99", posts("analyses/", {"resamples": 3})),
        ("star_scheme: '7' is not a star scheme", "Use 10/5/1 or", posts("analyses/", {"star_scheme": "7"})),
    ],
}
