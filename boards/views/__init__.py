"""The pages of boards: public pages, the page of a team, and the pages of members."""
