"""Addresses of the pages of members, below /boards/."""

from django.urls import path

from . import members

manage = "<slug:slug>/manage/"

urlpatterns = [
    path("new/", members.new_board_page, name="board_new"),
    path(manage, members.manage_page, name="board_manage"),
    path(f"{manage}settings/", members.board_settings_page, name="board_settings"),
    path(f"{manage}members/", members.members_page, name="board_members"),
    path(f"{manage}open/", members.open_board, name="board_open"),
    path(f"{manage}close/", members.close_board, name="board_close"),
    path(f"{manage}sample/renew/", members.renew_sample, name="board_sample_renew"),
    path(f"{manage}rounds/open/", members.open_round, name="board_round_open"),
    path(f"{manage}rounds/<int:number>/cancel/", members.cancel_round, name="board_round_cancel"),
    path(f"{manage}snapshots/take/", members.take_snapshot, name="board_snapshot_take"),
    path(f"{manage}metrics/compute/", members.compute_metrics, name="board_metrics_compute"),
    path(f"{manage}anchors/<int:number>/", members.choose_anchor, name="board_anchor"),
    path(f"{manage}teams/make/", members.create_team, name="board_team_create"),
    path(f"{manage}teams/<int:pk>/key/", members.replace_team_key, name="board_team_key"),
    path(f"{manage}teams/<int:pk>/revoke/", members.revoke_team, name="board_team_revoke"),
    path(f"{manage}bundle.json", members.download_bundle, name="board_bundle"),
]
