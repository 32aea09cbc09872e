"""What members and teams do with a board: open it, submit outputs, run rounds, and take snapshots."""
