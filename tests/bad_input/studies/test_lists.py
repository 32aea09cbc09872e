"""Lists and addresses bear every value of their parameters and ids."""

import re

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver

from tests import builders, players
from tests.addresses import addresses, filled
from tests.admin_pages import logged_in

pytestmark = pytest.mark.django_db


LISTS = ("studies/study", "studies/prompt", "studies/output", "studies/job", "studies/auditevent", "annotators/assignment",
         "annotators/recruitment", "analysis/apitoken", "analysis/analysisrun")  # fmt: skip
NOT_OFFERED = (
    "id__in=a", "id=1", "pk=1", "study__owner__password__startswith=a", "owner__password__startswith=p", "study__title__contains=s", "at__year=99999", "at__year=0",
    "created_at__gte=x", "seed=7", "user__password=x", "study__id__exact=99999999999999999999", "%00=1", "text__contains=a",
)  # fmt: skip
ODD_VALUES = (
    "q=%00", "q=%ED%A0%80", "q=" + "a" * 5000, "o=99", "o=-99.x", "o=" + "9" * 5000, "p=-1", "p=abc", "p=99999999999999999999", "p=" + "9" * 5000, "e=1", "_popup=x",
    "_to_field=password", "all=", "_facets=x", "_facets=1", "study=%00", "study=٣", "study=-1", "study=99999", "study=99999999999999999999",
    "study=1&study=2", "state=nonsense", "format=%00", "role=%00", "arm=99999999999999999999", "recruitment=x", "verb=%00", "format__exact=%00",
    "is_empty__exact=2", "origin__exact=%00", "channel__exact=x", "scope__exact=x",
)  # fmt: skip


@pytest.fixture
def administrator(study):
    return logged_in(builders.user("root", is_superuser=True))


@pytest.mark.parametrize("page", LISTS)
def test_a_list_is_filtered_by_what_it_offers_and_by_nothing_else(administrator, study, page):
    got = {query: administrator.get(f"/admin/{page}/?{query}").status_code for query in NOT_OFFERED}
    assert got == dict.fromkeys(NOT_OFFERED, 400)
    builders.launched(study)
    players.submitted(study, "1", recruitment=builders.panel(study))
    html = administrator.get(f"/admin/{page}/").content.decode()
    sidebar = html.partition('id="changelist-filter"')[2]
    offered = [one.replace("&amp;", "&") for one in re.findall(r'href="(\?[^"]*)"', sidebar)]
    assert bool(offered) == (page not in ("analysis/apitoken",))
    assert {one: administrator.get(f"/admin/{page}/{one}").status_code for one in offered} == dict.fromkeys(
        offered, 200
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", LISTS)
def test_a_list_bears_every_value(administrator, page):
    got = {query: administrator.get(f"/admin/{page}/?{query}").status_code for query in ODD_VALUES}
    assert {query: status for query, status in got.items() if status not in (200, 302, 400)} == {}


ODD_IDS = {
    "int": ("0", "99999999999999999999", "9223372036854775808"),
    "path": ("%00", "99999999999999999999", "_5F", "abc", "1/2", "-1", "%ED%A0%80", "9" * 5000, "1%00", "%D9%A3"),
    "str": ("%00", "x" * 3000, "%ED%A0%80"),
    "uuid": ("00000000-0000-0000-0000-000000000000",),
    "slug": ("x" * 3000, "-"),
}


@pytest.mark.slow
def test_no_id_of_any_address_breaks_its_page(world, monkeypatch):
    """Every address of the site with every kind of id that it takes, as an administrator, who is kept from nothing."""
    monkeypatch.setattr("analysis.api.permissions.requests_per_minute", lambda scope: 100_000)
    client = Client(raise_request_exception=False)
    client.force_login(world["people"]["administrator"])
    got = {}
    for route in set(addresses(get_resolver())):
        for kind, part in re.findall(r"(<(?:int|path|str|uuid|slug):\w+>)", route) and re.findall(
            r"(<(\w+):\w+>)", route
        ):
            kind, part = part, kind
            for odd in ODD_IDS[kind]:
                address = filled(route.replace(part, "{odd}"), world).replace("{odd}", odd)
                got[address] = client.get(address).status_code
    assert len(got) > 150
    assert {address[:120]: status for address, status in got.items() if status not in (200, 302, 403, 404, 405)} == {}
    # %D9%A3 is the number 3 in other digits, and there may be such a row.
    changed = {one[:120]: got[one] for one in got if one.endswith("/change/") and "%D9%A3" not in one}
    assert changed and 200 not in changed.values(), {one: got for one, got in changed.items() if got == 200}
    cache.clear()
