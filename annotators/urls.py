from django.urls import include, path

from . import views
from .panels.hooks import hook

of_an_assignment = [
    path("", views.first, name="first"),
    path("done/", views.done, name="done"),
    path("withdraw/", views.withdraw, name="withdraw"),
    path("time/", views.more_time, name="more_time"),
    path("another/", views.another, name="another"),
    path("parts/", views.parts, name="parts"),
    path("question/", views.inquire, name="inquire"),
    path("appeal/", views.appeal, name="appeal"),
    path("consent/", views.consent, name="consent"),
    path("m/<str:name>", views.media, name="media"),
    path("<str:key>/", views.page, name="page"),
]
urlpatterns = [
    path("e/<slug:key>/", views.entry, name="entry"),
    path("e/<slug:key>/hook/", hook, name="hook"),
    path("p/<str:code>/", include(of_an_assignment)),
]
