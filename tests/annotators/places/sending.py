"""Pages that a browser sends, and the answer it gets."""

from django.test import Client


def came_of(code: str, key: str, data: dict) -> str | int:
    """The answer to a browser that sends this: the next page's key, or the status."""
    answer = Client().post(f"/p/{code}/{key}/", data)
    return answer["Location"].split("/")[3] if answer.status_code == 302 else answer.status_code
