from django.contrib import admin

# In this order.
DISPLAY_NAMES = {
    "studies": "Studies",
    "annotators": "Annotators",
    "analysis": "Analyses",
    "boards": "Boards",
    "auth": "Accounts",
    "axes": "Log-ins",
    "ApiToken": "API tokens",
}


class HevalAdminSite(admin.AdminSite):
    site_header = site_title = "heval"
    index_title = "Overview"
    site_url = None
    enable_nav_sidebar = False

    def get_app_list(self, request, app_label=None):
        """Return the researchers' most important pages, with descriptive names."""
        apps = {app["app_label"]: app for app in super().get_app_list(request, app_label)}
        for app in apps.values():
            app["name"] = DISPLAY_NAMES.get(app["app_label"], app["name"])
            app["models"].sort(key=lambda model: model["object_name"] != "Study")
            for model in app["models"]:
                model["name"] = DISPLAY_NAMES.get(model["object_name"], model["name"])
        return [apps.pop(label) for label in DISPLAY_NAMES if label in apps] + list(apps.values())
