"""The interface's own description, and what is said where nothing is."""

from django.http import HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.views import APIView

from .renderers import build_problem


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI description."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()


class DocsView(APIView):
    """A page that lists what there is."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def get(self, request):
        found = SchemaGenerator().get_schema(request=None, public=True)
        rows = [
            (method.upper(), path, operation.get("summary", ""))
            for path, operations in sorted(found["paths"].items())
            for method, operation in operations.items()
        ]
        return HttpResponse(_docs_page(format_html_join("\n", "<tr><td>{}<td><code>{}</code><td>{}", rows)))


def _docs_page(rows: SafeString) -> str:
    return format_html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>REST interface of heval</title><main><h1>REST interface</h1>"
        '<p>Send a token: <code>Authorization: Token …</code>. The whole description: <a href="../schema/">OpenAPI</a>.</p>'
        "<table><caption>Resources</caption><thead><tr><th>Method<th>Path<th>What it does</thead><tbody>{}</tbody></table>"
        "</main></html>",
        rows,
    )


class NotFoundView(APIView):
    """Any other address below the interface, answered like the rest of it."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def dispatch(self, request, *args, **kwargs):
        self.headers = {}
        request = self.initialize_request(request, *args, **kwargs)
        answer = build_problem(
            404, "There is no such resource; every address ends in a slash or a file name. See /api/v1/docs/."
        )
        return self.finalize_response(request, answer, *args, **kwargs)
