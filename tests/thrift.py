"""What Django and Python do again for every test, although it comes out the same each time. Here they do it once, or not at all."""

import gc
from contextlib import nullcontext
from io import BytesIO

import django.test.utils
from django.conf import settings
from django.db.models.expressions import Col
from django.template import Template
from django.test.signals import template_rendered
from whitenoise.middleware import WhiteNoiseMiddleware

# Templates of form fields: a page of the admin has thousands of them, and no test asks for their contexts.
WIDGETS = ("django/forms/", "admin/widgets/")


def start() -> None:
    """Once in each process, before its first test."""
    django.test.utils.instrumented_test_render = _render
    WhiteNoiseMiddleware.add_files_from_finders = _add_files_from_finders
    Col.__hash__ = _hash_of_column
    gc.set_threshold(50_000, 20, 100)


def keep_what_is_imported() -> None:
    """The garbage collector need not look at modules and collected tests again: they stay until the end."""
    gc.collect()
    gc.freeze()


def keep_parts_of_fonts() -> None:
    """Before the first figure is drawn. A PDF holds the letters that it shows, and taking them out of a font is half of drawing it."""
    from analysis.report import plots

    drawn = plots._drawn

    def draw(figure):
        from matplotlib.backends import _backend_pdf_ps as fonts

        plots._drawn = drawn
        take_out, parts = fonts.get_glyphs_subset, {}

        def kept(fontfile, glyphs):
            key = str(fontfile), fontfile.face_index, tuple(glyphs)
            if key not in parts:
                with take_out(fontfile, glyphs) as part:
                    parts[key] = fonts.SubsetResults(as_file(part.font).getvalue(), part.glyph_index_map)
            return nullcontext(parts[key])

        as_file = fonts.font_as_file
        fonts.get_glyphs_subset, fonts.font_as_file = kept, BytesIO
        return drawn(figure)

    plots._drawn = draw


def _hash_of_column(self: Col) -> int:
    """Columns that are equal have equal hashes, as with Django's own, which binds the arguments of each column to a signature.

    Each query with an order asks for the hash of every column that it selects.
    """
    return hash((self.alias, self.target.name))


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
