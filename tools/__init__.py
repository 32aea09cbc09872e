"""Tools for those who develop heval. They are in no wheel and in no image."""
