from django.urls import include, path

from annotators.recruitment.panels.hooks import hook

from . import door, ends, pages

of_an_assignment = [
    path("", pages.first, name="first"),
    path("done/", ends.done, name="done"),
    path("withdraw/", ends.withdraw, name="withdraw"),
    path("time/", pages.more_time, name="more_time"),
    path("another/", ends.another, name="another"),
    path("parts/", ends.parts, name="parts"),
    path("question/", ends.inquire, name="inquire"),
    path("appeal/", ends.appeal, name="appeal"),
    path("consent/", ends.consent, name="consent"),
    path("m/<str:name>", pages.media, name="media"),
    path("<str:key>/", pages.page, name="page"),
]
urlpatterns = [
    path("e/<slug:key>/", door.entry, name="entry"),
    path("e/<slug:key>/hook/", hook, name="hook"),
    path("p/<str:code>/", include(of_an_assignment)),
]
