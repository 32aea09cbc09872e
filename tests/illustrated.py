"""Studies of every protocol whose pages show images, and what a browser gets when it asks for one."""

from studies.models import Output, Prompt
from studies.protocols import REGISTRY
from tests.builders import painted
from tests.samples import blocking, sample_draft

IMAGES = "**/p/*/m/*"


def illustrated(slug: str, media_root, m: int, target_n: int):
    """A draft of the protocol with an image for each prompt and, where the protocol lets outputs be images, for each output.

    None where the protocol shows no items.
    """
    if not REGISTRY[slug].has_items:
        return None
    draft = sample_draft(slug, m, target_n)
    before = blocking(draft)
    prompts, outputs = Prompt.objects.filter(study=draft), Output.objects.filter(system__study=draft)
    ((first,), (second,)) = painted((40,), 2, media_root)
    prompts.update(media=first)
    texts = dict(outputs.values_list("pk", "text"))
    outputs.update(text="", media=second)
    if blocking(draft) != before:
        for pk, text in texts.items():
            outputs.filter(pk=pk).update(text=text, media="")
    assert blocking(draft) == before
    return draft


class Line:
    """The browser's connection as far as images go: each is loaded, fails, or waits until it is let go."""

    def __init__(self, page):
        self.mode, self.waiting, self.failing = "loads", [], None
        page.route(IMAGES, self._answer)

    def _answer(self, route):
        if self.mode == "waits":
            self.waiting.append(route)
        elif self.mode == "fails" or (self.failing and self.failing in route.request.url):
            route.abort()
        else:
            route.continue_()

    def let_go(self):
        self.mode = "loads"
        for route in self.waiting:
            route.continue_()
        self.waiting = []
