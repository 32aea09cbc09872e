"""URLs below /api/v1/boards/."""

from django.urls import path

from . import boards, results, submissions, teams

board = "<slug:slug>/"
submission = f"{board}submissions/<int:number>/"

urlpatterns = [
    path("", boards.BoardsView.as_view(), name="api-boards"),
    # No board has this address (RESERVED_SLUGS).
    path("new/", teams.NewBoardView.as_view(), name="api-board-new"),
    path(board, boards.BoardDetailView.as_view(), name="api-board"),
    path(f"{board}open/", boards.OpenBoardView.as_view(), name="api-board-open"),
    path(f"{board}no-test-questions/", boards.NoTestQuestionsView.as_view(), name="api-board-no-test-questions"),
    path(f"{board}close/", boards.CloseBoardView.as_view(), name="api-board-close"),
    path(f"{board}renew/", boards.RenewSampleView.as_view(), name="api-board-renew"),
    path(f"{board}bundle/", teams.BoardBundleView.as_view(), name="api-board-bundle"),
    path(f"{board}members/", teams.MembersView.as_view(), name="api-board-members"),
    path(f"{board}annotators/", results.BoardAnnotatorsView.as_view(), name="api-board-annotators"),
    path(f"{board}prompts/", boards.BoardPromptsView.as_view(), name="api-board-prompts"),
    path(f"{board}prompts/archive/", boards.PromptsArchiveView.as_view(), name="api-board-prompts-archive"),
    path(f"{board}submissions/", submissions.SubmissionsView.as_view(), name="api-submissions"),
    path(f"{board}checks/<uuid:job>/", submissions.SubmissionCheckView.as_view(), name="api-submission-check"),
    path(submission, submissions.SubmissionDetailView.as_view(), name="api-submission"),
    path(f"{submission}withdraw/", submissions.WithdrawSubmissionView.as_view(), name="api-submission-withdraw"),
    path(f"{submission}publish/", submissions.PublishSubmissionView.as_view(), name="api-submission-publish"),
    path(f"{submission}anchor/", submissions.AnchorSubmissionView.as_view(), name="api-submission-anchor"),
    path(f"{submission}comparison/", submissions.CompareSubmissionView.as_view(), name="api-submission-comparison"),
    path(f"{board}rounds/", results.RoundsView.as_view(), name="api-rounds"),
    path(f"{board}rounds/<int:number>/cancel/", results.CancelRoundView.as_view(), name="api-round-cancel"),
    path(f"{board}snapshots/", results.SnapshotsView.as_view(), name="api-snapshots"),
    path(f"{board}snapshots/latest/", results.NewestSnapshotView.as_view(), name="api-snapshot-latest"),
    path(f"{board}snapshots/<int:number>/", results.SnapshotDetailView.as_view(), name="api-snapshot"),
    path(f"{board}snapshots/<int:number>/metrics/", results.SnapshotMetricsView.as_view(), name="api-snapshot-metrics"),
    path(f"{board}metrics/", results.BoardMetricsView.as_view(), name="api-board-metrics"),
    path(f"{board}labels/", results.LabelsView.as_view(), name="api-board-labels"),
    path(f"{board}labels/<uuid:job>/", results.LabelsFileView.as_view(), name="api-board-labels-file"),
    path(f"{board}jobs/<uuid:job>/", results.BoardJobView.as_view(), name="api-board-job"),
    path(f"{board}teams/", teams.TeamsView.as_view(), name="api-teams"),
    path(f"{board}teams/<int:number>/revoke/", teams.RevokeTeamView.as_view(), name="api-team-revoke"),
    path(f"{board}teams/<int:number>/key/", teams.NewTeamKeyView.as_view(), name="api-team-key"),
]
