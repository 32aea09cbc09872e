"""``heval token``: make a token of REST for an account, on the server, where no browser is needed."""

from datetime import timedelta

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.core.management.base import BaseCommand, CommandError
from django.http import Http404
from django.utils import timezone

from analysis.api.tokens import create_token
from analysis.models import ApiToken
from heval_site.management.exit_codes import WRONG_USE
from heval_site.management.find_study import find_study
from studies.access import is_researcher


class Command(BaseCommand):
    help = "Make a token with which programs use the REST interface in the name of an account. Print it: it is shown only now."

    def add_arguments(self, parser):
        parser.add_argument("user", help="The account's user name.")
        parser.add_argument("--name", default="made on the server", help="The program that uses the token.")
        parser.add_argument(
            "--scope",
            choices=ApiToken.Scope.values,
            default=ApiToken.Scope.READ,
            help="read (default); draft: read, and write drafts, which a person launches; write: all that the account may do",
        )
        parser.add_argument("--study", help="Only this study: its code, the beginning of its code, or its title.")
        parser.add_argument("--days", type=int, help="How many days the token works (default: until it is revoked).")
        parser.add_argument("--may-make-tokens", action="store_true", help="Programs may make more tokens with it.")

    def handle(self, *, user, name, scope, study, days, may_make_tokens, **options):
        account = get_user_model().objects.filter(username=user, is_active=True).first()
        if account is None or not is_researcher(account):
            raise CommandError(
                f"There is no active researcher “{user}”. Make one with heval createsuperuser, or in the admin.",
                returncode=WRONG_USE,
            )
        if days is not None and not 1 <= days <= 3650:
            raise CommandError("--days must be from 1 to 3650. Correct it.", returncode=WRONG_USE)
        try:
            _, token = create_token(
                account,
                name,
                scope=scope,
                study=find_study(study) if study else None,
                expires_at=None if days is None else timezone.now() + timedelta(days=days),
                may_make_tokens=may_make_tokens,
            )
        except (Http404, PermissionDenied):
            raise CommandError(
                f"“{user}” has no role in this study. Name another account or study.", returncode=WRONG_USE
            ) from None
        self.stdout.write(token)
