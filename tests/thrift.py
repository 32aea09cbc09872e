"""What Django and Python do again for every test, although it comes out the same each time. Here they do it once, or not at all."""

import gc

import django.test.utils
from django.conf import settings
from django.template import Template
from django.test.signals import template_rendered
from whitenoise.middleware import WhiteNoiseMiddleware

# Templates of form fields: a page of the admin has thousands of them, and no test asks for their contexts.
WIDGETS = ("django/forms/", "admin/widgets/")


def start() -> None:
    """Once in each process, before its first test."""
    django.test.utils.instrumented_test_render = _render
    WhiteNoiseMiddleware.add_files_from_finders = _add_files_from_finders
    gc.set_threshold(50_000, 20, 100)


def keep_what_is_imported() -> None:
    """The garbage collector need not look at modules and collected tests again: they stay until the end."""
    gc.collect()
    gc.freeze()


def _render(self: Template, context):
    """Like Django's own, which copies the context for `response.context`, but not for the templates of form fields."""
    if not (self.name or "").startswith(WIDGETS):
        template_rendered.send(sender=self, template=self, context=context)
    return self.nodelist.render(context)


_find_files = WhiteNoiseMiddleware.add_files_from_finders
_found: dict[tuple, dict] = {}


def _add_files_from_finders(self: WhiteNoiseMiddleware) -> None:
    """Every test client has middlewares of its own, and each of them would look at every static file."""
    key = (
        self.static_prefix,
        self.max_age,
        self.charset,
        self.allow_all_origins,
        repr(settings.STATICFILES_DIRS),
        repr(settings.INSTALLED_APPS),
        repr(settings.STORAGES["staticfiles"]),
    )
    if key not in _found:
        before = dict(self.files)
        _find_files(self)
        _found[key] = {url: file for url, file in self.files.items() if before.get(url) is not file}
    self.files.update(_found[key])
