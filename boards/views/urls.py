"""Addresses of public pages and files of boards, below /boards/."""

from django.urls import path

from . import files, metric_tables, pages, paper

urlpatterns = [
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
