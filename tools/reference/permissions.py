"""The page of permissions: the table that pages, the admin, the REST API and commands use."""

from studies.access import PERMISSIONS, Permission, Role

from .markdown import build_page, inline_code, markdown_table


def permissions_page() -> str:
    rows = [
        (
            inline_code(action),
            permission.about,
            permission.description,
            *_roles(permission),
            "" if permission.changes else "yes",
        )
        for action, permission in PERMISSIONS.items()
    ]
    return build_page(
        "Permissions",
        "Who may do what. Pages, the admin, the REST interface and commands all use this table.",
        markdown_table(("Action", "About", "What one may do", *(str(role) for role in Role), "token that reads"), rows),
        "Users without a role in a study get 404 at its addresses, as if it did not exist. Users with a role who may not do what they "
        "ask for get 403. Coders work blind: they read only what the study's annotators read.",
        "An administrator may do everything in every study. A REST token may do what its user may do. A token that only reads may do "
        "what the last column says. A token for one study gives access to no other study and cannot create one.",
        "Only their creator and administrators can see and end tokens and jobs without a study. Commands in "
        "the server's shell check no permissions.",
    )


def _roles(permission: Permission) -> list[str]:
    return ["yes" if permission.roles is None or role in permission.roles else "" for role in Role]
