from django.urls import path

from . import examples, feeds, files, pages

urlpatterns = [
    path("", pages.board_list_page, name="boards"),
    path("<slug:board>/", pages.board_page, name="board"),
    path("<slug:board>/history/", pages.history_page, name="board_history"),
    path("<slug:board>/history/figure.svg", files.history_picture, name="board_history_figure"),
    path("<slug:board>/examples/", examples.examples_page, name="board_examples"),
    path("<slug:board>/embed/", pages.embedded_table, name="board_embed"),
    path("<slug:board>/rss/", feeds.SnapshotFeed(), name="board_rss"),
    path("<slug:board>/atom/", feeds.AtomSnapshotFeed(), name="board_atom"),
    path("<slug:board>/badge/<int:entry>.svg", files.badge, name="board_badge"),
    path("<slug:board>/<int:snapshot>/", pages.snapshot_page, name="board_snapshot"),
    path("<slug:board>/<int:snapshot>/embed/", pages.embedded_table, name="board_snapshot_embed"),
    path("<slug:board>/<int:snapshot>/figure.svg", files.snapshot_figure, name="board_snapshot_figure"),
    path("<slug:board>/<int:snapshot>/scores.<str:file_format>", files.snapshot_file, name="board_snapshot_file"),
]
