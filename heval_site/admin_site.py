from django.contrib import admin


class HevalAdminSite(admin.AdminSite):
    site_header = site_title = "heval"
    index_title = "Studies"
    enable_nav_sidebar = False
