"""Addresses of the pages of teams, below /boards/."""

from django.urls import path

from . import team_pages

team = "<slug:slug>/team/<str:key>/"

urlpatterns = [
    path(team, team_pages.team_page, name="team_page"),
    path(f"{team}<int:number>/withdraw/", team_pages.withdraw_page, name="team_withdraw"),
    path(f"{team}<int:number>/publish/", team_pages.publish_page, name="team_publish"),
    path(f"{team}checks/<uuid:job>/", team_pages.check_page, name="team_check"),
    path(f"{team}prompts.<str:file_format>", team_pages.prompts_file, name="team_prompts"),
]
