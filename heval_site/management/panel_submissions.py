"""``heval study reconcile``: compare a panel's submissions with heval's assignments now, in this process."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management import CommandError

from annotators.models import Recruitment
from annotators.recruitment.channels.exported_file import LIMITS
from annotators.recruitment.panels.http_client import NoService
from annotators.recruitment.panels.reconcile import MATCH_STATUSES, import_panel_file_and_release_places
from annotators.recruitment.panels.sync import PanelUnavailable, send_orders_and_sync_panel
from heval_site.management.exit_codes import WRONG_USE
from studies.models import Study
from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import text_of_table


def reconcile(study: Study, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what was found at the panel of a link, as counts and as lines."""
    links = Recruitment.objects.select_related("study").filter(study=study)
    keys = list(links.values_list("key", flat=True))
    key = options["link"] or (keys[0] if len(keys) == 1 else "")
    if key not in keys:
        raise CommandError(
            f"--link {key or 'is missing'}: name a link of the study, one of: {', '.join(keys) or 'none'}.",
            returncode=WRONG_USE,
        )
    link, is_dry_run = links.get(key=key), options["dry_run"]
    try:
        if options["file"]:
            found = _reconcile_file(link, options["file"], is_dry_run)
        else:
            found = send_orders_and_sync_panel(link, lambda *_: None, dry_run=is_dry_run)
    except (NoService, PanelUnavailable) as error:
        raise CommandError(str(error)) from None
    lines = [
        f"{found.seen} submissions: {found.new} new, {found.changed} changed, {found.linked} "
        f"matched to assignments, {found.confirmed} confirmed, {found.released} places released"
    ]
    for name, n in found.classes.items():
        label, advice = MATCH_STATUSES[name]
        lines.append(f"{n:6} {label}{f'. {advice}' if advice else ''}")
    return asdict(found), [*lines, "Nothing was changed."] if is_dry_run else lines


def _reconcile_file(link: Recruitment, name: str, is_dry_run: bool) -> Any:
    try:
        text = text_of_table(name, Path(name).read_bytes(), LIMITS.bytes)
        return import_panel_file_and_release_places(link, text, None, is_dry_run)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}. Correct --file.", returncode=WRONG_USE) from None
    except UnreadableFile as refused:
        raise CommandError(refused.text, returncode=WRONG_USE) from None
    except ValueError as refused:
        raise CommandError(str(refused), returncode=WRONG_USE) from None
