"""All pages of researchers have one frame: the same header and tabs, one left edge, one size of titles, and no sideways scroll."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver

from tests.addresses import addresses, everything, filled

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

# Pages for which this is another matter: files, and what annotators see inside a frame of the preview.
NOT_PAGES = (
    "admin/invitation/",
    "preview/",
    "/tables/",
    "/figures/",
    ".json",
    ".csv",
    "bundle/",
    "admin/studies/study/preview-text/",
)
MEASURED = """() => {
  const shown = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
  const titles = [...document.querySelectorAll("h1")].filter(shown);
  const box = (one) => one.getBoundingClientRect();
  return {
    titles: titles.map((one) => [Math.round(box(one).left), getComputedStyle(one).fontSize]),
    // The page of components shows its button once for each scheme.
    primary: [...document.querySelectorAll(".go-on, button.first, a.first, input.default")].filter((one) => shown(one) && !one.closest(".scheme")).map((one) => one.textContent.trim() || one.value),
    tabs: [...document.querySelectorAll(".tabs > li")].map((one) => one.innerText.trim().split("\\n")[0]),
    current: [...document.querySelectorAll(".tabs [aria-current]")].length,
    header: [...document.querySelectorAll("#header nav a")].map((one) => one.textContent),
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    // Of two columns, how far the shorter one ends above the other.
    hole: Math.max(0, ...[...document.querySelectorAll(".home, .plan")].filter((one) => getComputedStyle(one).gridTemplateColumns.includes(" ")).map((one) => {
      const ends = {};
      for (const part of one.children) ends[Math.round(box(part).left)] = Math.max(ends[Math.round(box(part).left)] ?? 0, box(part).bottom);
      return Math.max(...Object.values(ends)) - Math.min(...Object.values(ends));
    })),
  };
}"""
TABS = ["Design", "Preview", "Plan", "Launch", "Collect", "Analyse", "Share"]


def pages_of_researchers(world, client) -> list[str]:
    """The addresses of all pages that an owner of a study and a board may open."""
    routes = [
        route
        for route in sorted(set(addresses(get_resolver())))
        if route.startswith(("admin/", "boards/<slug:slug>/manage/", "boards/new/"))
        and not any(part in route for part in NOT_PAGES)
    ]
    found = []
    for route in routes:
        response = client.get(filled(route, world))
        if response.status_code == 200 and response["Content-Type"].startswith("text/html"):
            found.append(filled(route, world))
    return sorted(set(found))


@pytest.mark.parametrize("width", [1280, 375])
def test_all_pages_of_researchers_have_one_frame(browser, live_server, width):
    world = everything()
    client = Client()
    client.force_login(world["people"]["owner"])
    pages = pages_of_researchers(world, client)
    assert len(pages) > 45, pages
    context = browser.new_context(viewport={"width": width, "height": 800})
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page = context.new_page()
    edge, wrong = 32 if width == 1280 else 16, []
    for address in pages:
        page.goto(live_server.url + address)
        seen = page.evaluate(MEASURED)
        faults = []
        if seen["titles"] != [[edge, "22px"]]:
            faults.append(f"titles {seen['titles']}")
        if len(seen["primary"]) > 1:
            faults.append(f"primary buttons {seen['primary']}")
        if seen["header"] != ["heval", "My studies", "Boards", "Documentation"]:
            faults.append(f"header {seen['header']}")
        if address.startswith(f"/admin/studies/study/{world['study'].pk}/") and (
            seen["tabs"] != TABS or seen["current"] > 1
        ):
            faults.append(f"tabs {seen['tabs']}, {seen['current']} current")
        if seen["wide"] > 0:
            faults.append(f"{seen['wide']} px too wide")
        if seen["hole"] > 400:
            faults.append(f"a hole of {seen['hole']:.0f} px")
        wrong += [f"{address}: {one}" for one in faults]
    context.close()
    assert not wrong, "\n".join(wrong)
