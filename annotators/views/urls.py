from django.urls import include, path

from annotators.recruitment.panels.hooks import receive_webhook

from . import door, ends, pages

assignment_urlpatterns = [
    path("", pages.redirect_to_next_page, name="first"),
    path("done/", ends.done_page, name="done"),
    path("withdraw/", ends.withdraw, name="withdraw"),
    path("time/", pages.extend_deadline, name="more_time"),
    path("another/", ends.start_another_part, name="another"),
    path("parts/", ends.parts_overview, name="parts"),
    path("question/", ends.inquire, name="inquire"),
    path("appeal/", ends.appeal, name="appeal"),
    path("consent/", ends.consent, name="consent"),
    path("m/<str:name>", pages.media, name="media"),
    path("<str:key>/", pages.page, name="page"),
]
urlpatterns = [
    path("e/<slug:key>/", door.entry, name="entry"),
    path("e/<slug:key>/hook/", receive_webhook, name="hook"),
    path("p/<str:code>/", include(assignment_urlpatterns)),
]
