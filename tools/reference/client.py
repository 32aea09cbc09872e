"""The page of the Python client: the methods of a site and of a study."""

import inspect

from heval_site.management import client

from .markdown import as_sentence, build_page, inline_code


def client_page() -> str:
    parts = []
    for kind in (client.Site, client.Study):
        methods = [(name, one) for name, one in vars(kind).items() if inspect.isfunction(one) and name[0] != "_"]
        parts += [f"## {kind.__name__}", as_sentence(inspect.getdoc(kind) or "")]
        parts.append("\n".join(_line(name, one) for name, one in methods))
    return build_page(
        "Python client",
        "The methods of `heval_client`. Those of `AsyncSite` and `AsyncStudy` are the same, and awaited.",
        *parts,
    )


def _line(name: str, method: object) -> str:
    parameters = ", ".join(list(inspect.signature(method).parameters)[1:])  # type: ignore[arg-type]  # a function
    words = (inspect.getdoc(method) or "").partition("\n\n")[0].replace("\n", " ")
    return f"- {inline_code(f'{name}({parameters})')}: {words}"
