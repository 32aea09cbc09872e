"""The commands that people type first."""

import io

import pytest
from django.core.management import CommandError, call_command

from heval_site import cli, preparing
from heval_site.management.commands import demo
from studies import jobs
from studies.models import Job

pytestmark = pytest.mark.django_db


def test_help_fits_on_a_screen_and_names_every_command(capsys):
    cli.main(["--help"])
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 20 and max(map(len, text.splitlines())) <= 80
    for name in cli.COMMANDS:
        assert f"  {name} " in text


def test_a_secret_needs_no_settings_and_is_long(capsys):
    cli.main(["secret"])
    cli.main(["secret"])
    one, two = capsys.readouterr().out.split()
    assert len(one) >= 50 and one != two


def test_the_worker_runs_what_waits_once(monkeypatch):
    jobs.load()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    jobs.register("any")(lambda job, progress: 1)
    job = jobs.submit("any")
    out = io.StringIO()
    call_command("worker", "--once", stdout=out)
    assert out.getvalue() == "1 jobs run\n"
    assert Job.objects.get(pk=job.pk).state == Job.State.DONE
    assert jobs.is_runner_alive()


def test_up_refuses_where_migrations_wait_and_may_not_be_applied(monkeypatch):
    from heval_site.management.commands import up

    monkeypatch.setattr(up, "is_prepared", lambda: False)
    monkeypatch.setattr(up, "serve", lambda: pytest.fail("served"))
    with pytest.raises(CommandError, match="heval prepare"):
        call_command("up", "--no-migrate")


def test_what_is_prepared_is_known_to_be():
    assert preparing.is_prepared()


def test_the_demo_makes_an_administrator_once_and_tells_the_password_once():
    user, password = demo.administrator()
    assert user.check_password(password) and user.is_superuser and len(password) >= 12
    assert demo.administrator() == (user, "")
