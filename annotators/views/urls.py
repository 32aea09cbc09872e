from django.urls import include, path

from annotators.recruitment.panels.sync import receive_webhook

from . import appeals, entry, pages

assignment_urlpatterns = [
    path("", pages.redirect_to_next_page, name="next_page"),
    path("done/", pages.end_page, name="done"),
    path("withdraw/", pages.withdrawal_page, name="withdraw"),
    path("time/", pages.extend_or_revive_place_and_save_draft, name="more_time"),
    path("another/", pages.start_another_part, name="another_part"),
    path("parts/", pages.parts_overview_page, name="parts"),
    path("question/", pages.inquiry_page, name="inquiry"),
    path("appeal/", appeals.appeal_page, name="appeal"),
    path("consent/", pages.consent_text_page, name="consent"),
    path("m/<str:name>", pages.image_file, name="media"),
    path("<str:key>/", pages.annotation_page, name="page"),
]
urlpatterns = [
    path("e/<slug:key>/", entry.entry_page, name="entry"),
    path("e/<slug:key>/appeal/<str:token>/", appeals.visitor_appeal_page, name="visitor_appeal"),
    path("e/<slug:key>/webhook/", receive_webhook, name="webhook"),
    path("p/<str:code>/", include(assignment_urlpatterns)),
]
