import secrets
import shlex
import sys

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from heval_site.runtime.preparing import prepare, serve, take_place

NAME = "admin"
# As it can be typed here: in a checkout there is no command called heval.
NEW_PASSWORD = f"HEVAL_HOME={shlex.quote(str(settings.HEVAL_HOME))} {shlex.quote(sys.executable)} -m heval_site.management.cli changepassword"


class Command(BaseCommand):
    help = "A site with a study, its annotator's link and its report, on this machine, at once."

    def handle(self, *args, **options):
        if not settings.EMBEDDED:
            raise CommandError("The demo keeps its data in HEVAL_HOME: unset DATABASE_URL.")
        lock = take_place()
        prepare()
        user, password = administrator()
        from heval_site.management.demo import load_demo

        demo = load_demo(user)
        login = (
            f"name {NAME}, password {password}" if password else f"name {user}; a new password: {NEW_PASSWORD} {user}"
        )
        self.stdout.write(f"heval keeps its data in {settings.HEVAL_HOME}", ending="\n")
        serve(
            lock,
            f"\n  Admin      {settings.SITE_URL}/admin/   ({login})\n"
            f"  Annotator  {settings.SITE_URL}{demo.annotator_url_path}\n"
            f"  Report     {settings.SITE_URL}{demo.report_url_path}\n\nCtrl-C ends it.",
        )


def administrator():
    """The administrator, and the password where the account is new: it is shown this once."""
    model = get_user_model()
    user = model.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user:
        return user, ""
    password = secrets.token_urlsafe(9)
    return model.objects.create_superuser(NAME, password=password), password
