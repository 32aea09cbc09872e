"""The page of permissions: the one table that pages, the admin, the REST interface and commands ask."""

from studies.access import PERMISSIONS, Permission, Role

from .markdown import build_page, inline_code, table


def permissions_page() -> str:
    rows = [
        (inline_code(action), one.about, one.words, *_roles(one), "" if one.changes else "yes")
        for action, one in PERMISSIONS.items()
    ]
    return build_page(
        "Permissions",
        "Who may do what. Pages, the admin, the REST interface and commands ask this one table.",
        table(("Action", "About", "What one may do", *(str(role) for role in Role), "token that reads"), rows),
        "Whoever has no role in a study does not know that it exists: its addresses answer 404. Whoever has one, and may not do what is "
        "asked, gets 403. A coder works blind, and reads of a study what its annotators read.",
        "An administrator may do everything in every study. A token of the REST interface may do what its user may: one that only reads "
        "what the last column says, one that is bound to a study nothing outside it, and it makes no new study.",
        "Tokens, and jobs that belong to no study, are seen and ended by the person who made them and by administrators. A command of "
        "the server's own shell asks nobody.",
    )


def _roles(permission: Permission) -> list[str]:
    return ["yes" if permission.roles is None or role in permission.roles else "" for role in Role]
