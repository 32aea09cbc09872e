from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.core.checks import Tags, register


class HevalAdminConfig(AdminConfig):
    default_site = "heval_site.views.admin_site.HevalAdminSite"


class HevalSiteConfig(AppConfig):
    """An app only for its commands (up, worker, doctor, demo). It has no models."""

    name = "heval_site"
    verbose_name = "heval"

    def ready(self):
        from .runtime import broker, startup

        broker.connect_worker_wakeup()
        register(startup.check_schema_age, Tags.database)
