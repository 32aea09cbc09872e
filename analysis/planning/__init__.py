"""Plan how many people and prompts a study needs: what is asked, the job that simulates it, and the page of a draft."""
