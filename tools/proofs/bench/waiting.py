"""Clients that wait by long polling beside the annotators of a measurement. Run in a site's environment, it prints tokens.

python -m tools.proofs.bench.waiting HOW_MANY
"""

import json
import sys
import threading
import urllib.error
import urllib.request

import django


def make_tokens(n: int) -> list[str]:
    from analysis.api.tokens import create_token
    from tests.builders import user

    admin = user("waiting", is_superuser=True)
    return [create_token(admin, f"client {number}")[1] for number in range(n)]


def wait(address: str, token: str) -> None:
    """Ask again and again, and pause only when the site says so."""
    known, pause = "", threading.Event()
    while True:
        headers = {"Authorization": f"Token {token}", "If-None-Match": known}
        try:
            answer = urllib.request.urlopen(urllib.request.Request(f"{address}?wait=30", headers=headers), timeout=60)
        except urllib.error.HTTPError as unchanged:
            answer = unchanged
        except OSError:  # the site has ended
            return
        known = answer.headers["ETag"] or ""
        answer.close()
        pause.wait(float(answer.headers["Retry-After"] or 0))


def start(site, study: str, n: int) -> None:
    """Let so many clients wait for the study, each with its token, until the site ends."""
    for token in json.loads(site.run("tools.proofs.bench.waiting", str(n))):
        address = f"{site.address}/api/v1/studies/{study}/progress/"
        threading.Thread(target=wait, args=(address, token), daemon=True).start()


if __name__ == "__main__":
    django.setup()
    json.dump(make_tokens(int(sys.argv[1])), sys.stdout)
