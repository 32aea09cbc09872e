"""The OpenAPI description, its HTML page, and the response to unknown addresses."""

from functools import cache
from typing import Any

from django.http import HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.views import APIView

from .renderers import problem_response


@cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI description. It is the same for all callers, and a process makes it once, in a third of a second."""
    return SchemaGenerator().get_schema(request=None, public=True)


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI description as JSON."""

    class generator_class(SchemaGenerator):
        def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
            return describe_api()

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()


class DocsView(APIView):
    """An HTML page that lists all resources."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def get(self, request):
        rows = [
            (method.upper(), path, operation.get("summary", ""))
            for path, operations in sorted(describe_api()["paths"].items())
            for method, operation in operations.items()
        ]
        return HttpResponse(_docs_page(format_html_join("\n", "<tr><td>{}<td><code>{}</code><td>{}", rows)))


def _docs_page(rows: SafeString) -> str:
    return format_html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>REST interface of heval</title><main><h1>REST interface</h1>"
        '<p>Send a token: <code>Authorization: Token …</code>. Full description: <a href="../schema/">OpenAPI</a>.</p>'
        "<table><caption>Resources</caption><thead><tr><th>Method<th>Path<th>Description</thead><tbody>{}</tbody></table>"
        "</main></html>",
        rows,
    )


class NotFoundView(APIView):
    """Answer every unknown API address with a JSON problem instead of an HTML page."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def dispatch(self, request, *args, **kwargs):
        self.headers = {}
        request = self.initialize_request(request, *args, **kwargs)
        answer = problem_response(
            404, "This address does not exist. Addresses end in a slash or a file name. /api/v1/docs/ lists them."
        )
        return self.finalize_response(request, answer, *args, **kwargs)
