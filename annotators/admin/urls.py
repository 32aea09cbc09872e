from django.urls import path

from . import events, launch, views

urlpatterns = [
    # This must come before the address of a stimuli file, which ends in an arbitrary name.
    path("<int:pk>/import/answers/", views.answers_upload_page, name="import_answers"),
    path("<int:pk>/new/try/", views.new_study_try_page, name="new_study_try"),
    path("<int:pk>/events/", events.events_page, name="study_events"),
    path("<int:pk>/launch/", launch.launch_page, name="study_launch"),
    path("<int:pk>/new/link/", launch.link_page, name="new_study_link"),
]
