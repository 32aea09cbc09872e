from django.urls import path

from . import views

urlpatterns = [
    path("e/<slug:key>/", views.entry, name="entry"),
    path("p/<str:code>/", views.first, name="first"),
    path("p/<str:code>/done/", views.done, name="done"),
    path("p/<str:code>/withdraw/", views.withdraw, name="withdraw"),
    path("p/<str:code>/time/", views.more_time, name="more_time"),
    path("p/<str:code>/another/", views.another, name="another"),
    path("p/<str:code>/question/", views.inquire, name="inquire"),
    path("p/<str:code>/consent/", views.consent, name="consent"),
    path("p/<str:code>/m/<str:name>", views.media, name="media"),
    path("p/<str:code>/<str:key>/", views.page, name="page"),
]
