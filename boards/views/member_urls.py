"""Addresses of the pages of members, below /boards/."""

from django.urls import path

from . import member_pages

manage = "<slug:slug>/manage/"

urlpatterns = [
    path("new/", member_pages.new_board_page, name="board_new"),
    path(manage, member_pages.manage_page, name="board_manage"),
    path(f"{manage}settings/", member_pages.board_settings_page, name="board_settings"),
    path(f"{manage}members/", member_pages.members_page, name="board_members"),
    path(f"{manage}open/", member_pages.open_board, name="board_open"),
    path(f"{manage}close/", member_pages.close_board, name="board_close"),
    path(f"{manage}sample/renew/", member_pages.renew_sample, name="board_sample_renew"),
    path(f"{manage}rounds/open/", member_pages.open_round, name="board_round_open"),
    path(f"{manage}rounds/<int:number>/cancel/", member_pages.cancel_round, name="board_round_cancel"),
    path(f"{manage}snapshots/take/", member_pages.take_snapshot, name="board_snapshot_take"),
    path(f"{manage}metrics/compute/", member_pages.compute_metrics, name="board_metrics_compute"),
    path(f"{manage}anchors/<int:number>/", member_pages.choose_anchor, name="board_anchor"),
    path(f"{manage}teams/make/", member_pages.create_team, name="board_team_create"),
    path(f"{manage}teams/<int:pk>/key/", member_pages.replace_team_key, name="board_team_key"),
    path(f"{manage}teams/<int:pk>/revoke/", member_pages.revoke_team, name="board_team_revoke"),
    path(f"{manage}bundle.json", member_pages.download_bundle, name="board_bundle"),
]
