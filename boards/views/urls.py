"""Addresses of boards, below /boards/: pages of members, pages of teams, and public pages and files."""

from django.urls import path

from . import annotators, files, members, metric_tables, pages, paper, team_pages

manage = "<slug:slug>/manage/"
team = "<slug:slug>/team/<str:key>/"

urlpatterns = [
    path("new/", members.new_board_page, name="board_new"),
    path(manage, members.manage_page, name="board_manage"),
    path(f"{manage}settings/", members.board_settings_page, name="board_settings"),
    path(f"{manage}members/", members.members_page, name="board_members"),
    path(f"{manage}annotators/", annotators.annotators_page, name="board_annotators"),
    path(f"{manage}open/", members.open_board, name="board_open"),
    path(f"{manage}no-test-questions/", members.go_without_test_questions, name="board_no_test_questions"),
    path(f"{manage}close/", members.close_board, name="board_close"),
    path(f"{manage}sample/renew/", members.renew_sample, name="board_sample_renew"),
    path(f"{manage}rounds/open/", members.open_round, name="board_round_open"),
    path(f"{manage}rounds/<int:number>/cancel/", members.cancel_round, name="board_round_cancel"),
    path(f"{manage}snapshots/take/", members.take_snapshot, name="board_snapshot_take"),
    path(f"{manage}metrics/compute/", members.compute_metrics, name="board_metrics_compute"),
    path(f"{manage}labels/", members.write_labels, name="board_labels"),
    path(f"{manage}labels/<uuid:job>/", members.labels_file, name="board_labels_file"),
    path(f"{manage}anchors/<int:number>/", members.choose_anchor, name="board_anchor"),
    path(f"{manage}teams/make/", members.create_team, name="board_team_create"),
    path(f"{manage}teams/<int:pk>/key/", members.replace_team_key, name="board_team_key"),
    path(f"{manage}teams/<int:pk>/revoke/", members.revoke_team, name="board_team_revoke"),
    path(f"{manage}bundle.json", members.download_bundle, name="board_bundle"),
    path(team, team_pages.team_page, name="team_page"),
    path(f"{team}<int:number>/withdraw/", team_pages.withdraw_page, name="team_withdraw"),
    path(f"{team}<int:number>/publish/", team_pages.publish_page, name="team_publish"),
    path(f"{team}checks/<uuid:job>/", team_pages.check_page, name="team_check"),
    path(f"{team}prompts.<str:file_format>", team_pages.prompts_file, name="team_prompts"),
    path("", pages.board_list_page, name="boards"),
    path("<slug:slug>/", pages.board_page, name="board"),
    path("<slug:slug>/history/", pages.history_page, name="board_history"),
    path("<slug:slug>/history/figure.svg", files.history_picture, name="board_history_figure"),
    path("<slug:slug>/examples/", pages.examples_page, name="board_examples"),
    path("<slug:slug>/examples/<int:prompt>/prompt.webp", pages.example_image, name="board_example_prompt"),
    path("<slug:slug>/examples/<int:prompt>/<int:submission>.webp", pages.example_image, name="board_example_image"),
    path("<slug:slug>/embed/", pages.embedded_table, name="board_embed"),
    path("<slug:slug>/rss/", pages.SnapshotFeed(), name="board_rss"),
    path("<slug:slug>/atom/", pages.AtomSnapshotFeed(), name="board_atom"),
    path("<slug:slug>/badge/<int:number>.svg", files.badge, name="board_badge"),
    path("<slug:slug>/<int:number>/", pages.snapshot_page, name="board_snapshot"),
    path("<slug:slug>/<int:number>/paper/", paper.paper_page, name="board_paper"),
    path("<slug:slug>/<int:number>/metrics/", metric_tables.metrics_page, name="board_metrics"),
    path("<slug:slug>/<int:number>/embed/", pages.embedded_table, name="board_snapshot_embed"),
    path("<slug:slug>/<int:number>/figure.svg", files.snapshot_figure, name="board_snapshot_figure"),
    path("<slug:slug>/<int:number>/scores.<str:file_format>", files.snapshot_file, name="board_snapshot_file"),
]
