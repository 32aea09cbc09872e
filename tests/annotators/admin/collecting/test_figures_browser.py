"""The pictures of a study that collects, in Chromium: both widths, light and dark."""

import pytest
from django.conf import settings
from django.db.models import F

from annotators.models import Assignment, PageVisit
from annotators.places import assign
from tests import builders, players
from tests.browsing import look_at, shot

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_pictures_have_no_fault_and_fit(browser, live_server, client, owner):
    study = builders.spa_study(owner, target_n=10)
    for n in range(6):
        done = players.submitted(study, str(n))
        PageVisit.objects.filter(assignment=done).update(active_seconds=F("id") % 7 * 20 + 10 * (n + 1))
        Assignment.objects.filter(pk=done.pk).update(claimed_at=F("submitted_at"))
    for n, reason in enumerate(("expired", "withdrawn", "screened_out"), 6):
        gone = players.submitted(study, str(n), until="s2.ask" if n < 8 else "s2.read")
        assign.mark_started_and_extend_deadline(gone)
        assign.release_assignment(gone.pk, reason)
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    page, wrong = context.new_page(), []
    page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/collecting/")
    assert page.locator(".figures svg").count() == 3
    page.locator(".figures details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    look_at(page, "collecting", wrong)
    shot(page, "collecting")
    page.emulate_media(color_scheme="dark")
    shot(page, "collecting-dark")
    # No text of a picture lies outside it, and none on another one.
    wrong += page.evaluate("""() => [...document.querySelectorAll(".figures svg")].flatMap((svg) => {
      const outer = svg.getBoundingClientRect(), texts = [...svg.querySelectorAll("text")];
      const boxes = texts.map((one) => one.getBoundingClientRect());
      return texts.flatMap((one, n) => [
        ...(boxes[n].left < outer.left - 1 || boxes[n].right > outer.right + 1 || boxes[n].bottom > outer.bottom + 1 ? [`outside: ${one.textContent}`] : []),
        ...texts.slice(n + 1).filter((_, m) => { const other = boxes[n + 1 + m]; return boxes[n].left < other.right - 1 && other.left < boxes[n].right - 1
          && boxes[n].top + 2 < other.bottom - 2 && other.top + 2 < boxes[n].bottom - 2; }).map((other) => `${one.textContent} on ${other.textContent}`)]);
    })""")
    context.close()
    assert not wrong, "\n".join(wrong)
