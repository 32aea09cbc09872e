import secrets
import shlex
import sys
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from heval_site.runtime.startup import (
    in_child_process,
    lock_home_and_check_port_or_exit,
    migrate_and_create_cache_and_media_folder,
    serve,
)

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser

ADMIN_NAME = "admin"
# A command that works here, because a checkout has no `heval` command.
CHANGE_PASSWORD_COMMAND = f"HEVAL_HOME={shlex.quote(str(settings.HEVAL_HOME))} {shlex.quote(sys.executable)} -m heval_site.management.cli changepassword"


class Command(BaseCommand):
    help = "Start a demo site on this machine, with a study, an annotator's link, a report and a board."

    def handle(self, *args, **options):
        if not settings.EMBEDDED:
            raise CommandError("The demo stores its data in HEVAL_HOME. Unset DATABASE_URL first.")
        lock = lock_home_and_check_port_or_exit()
        addresses = in_child_process(prepare_demo)
        self.stdout.write(f"heval stores its data in {settings.HEVAL_HOME}", ending="\n")
        serve(lock, f"{addresses}Ctrl-C ends it.")


def prepare_demo() -> str:
    """Make the site's tables, its administrator, studies and board. Return what to tell who starts the demo."""
    migrate_and_create_cache_and_media_folder()
    user, password = get_admin_or_create_with_password()
    from heval_site.management.demo import get_or_create_demo_studies
    from heval_site.management.demo_board import get_or_create_demo_board

    demo = get_or_create_demo_studies(user)
    board = get_or_create_demo_board(user)
    login = (
        f"name {ADMIN_NAME}, password {password}"
        if password
        else f"name {user}; to set a new password: {CHANGE_PASSWORD_COMMAND} {user}"
    )
    return (
        f"\n  Admin      {settings.SITE_URL}/admin/   ({login})\n"
        f"  Annotator  {settings.SITE_URL}{demo.annotator_url_path}\n"
        f"  Report     {settings.SITE_URL}{demo.report_url_path}\n"
        f"  Board      {settings.SITE_URL}{reverse('board', args=[board.slug])}   (robots play its rounds for a minute or two)\n\n"
    )


def get_admin_or_create_with_password() -> "tuple[AbstractBaseUser, str]":
    """Create the administrator. Return the password only if the account is new; it is shown only once."""
    model = get_user_model()
    user = model.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if user:
        return user, ""
    password = secrets.token_urlsafe(9)
    return model.objects.create_superuser(ADMIN_NAME, password=password), password
