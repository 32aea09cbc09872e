"""A plain link for colleagues, classes and mailing lists. People are not identified, so anyone can take part."""

from . import Arrival, Channel, register


@register
class OpenLink(Channel):
    slug = "open_link"
    label = "Open link"
    help = "Anyone with the link may take part. People can return only by the address of their own page."
    identifies_people = False

    def read_arrival(self, recruitment, parameters):
        return Arrival(trust="none")
