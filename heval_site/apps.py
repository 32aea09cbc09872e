from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.core.checks import Tags, register


class HevalAdminConfig(SimpleAdminConfig):
    """The pages are discovered with the addresses, so that commands and jobs do not import them."""

    default_site = "heval_site.views.admin_site.HevalAdminSite"


class HevalSiteConfig(AppConfig):
    """An app only for its commands (up, worker, doctor, demo). It has no models."""

    name = "heval_site"
    verbose_name = "heval"

    def ready(self):
        from .runtime import broker, startup

        broker.connect_worker_wakeup()
        register(startup.check_schema_age, Tags.database)

    def prepare_before_fork(self) -> None:
        """Refuse a wrong pseudonym key and close connections, in a process that is about to fork its workers."""
        from .runtime.pseudonym_key import refuse_wrong_key_at_start
        from .runtime.startup import close_connections_before_fork

        refuse_wrong_key_at_start()
        close_connections_before_fork()
