"""Programs that prove what the documentation promises. README.md says what each proves, its command, and its duration."""
