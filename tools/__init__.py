"""Tools for developers of heval. They are not in the wheel or the image."""
