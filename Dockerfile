# One image for web, worker, batches, beat and migrate; compose.yaml says which is which.
FROM python:3.13-slim-bookworm AS build
WORKDIR /srv/heval
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /srv/venv
ENV PATH=/srv/venv/bin:$PATH
COPY requirements.lock ./
RUN pip install --require-hashes --no-deps -r requirements.lock
COPY manage.py pyproject.toml LICENSE ./
COPY heval_site heval_site
COPY studies studies
COPY annotators annotators
COPY analysis analysis
COPY boards boards
COPY templates templates
COPY static static
# Static files under names with a hash, compressed. The state that this needs is thrown away with this stage.
RUN printf '#!/bin/sh\nexec python -m heval_site.management.cli "$@"\n' > /srv/venv/bin/heval \
    && chmod 755 /srv/venv/bin/heval \
    && python -m compileall -q heval_site studies annotators analysis boards \
    && HEVAL_HOME=/tmp/heval STATIC_ROOT=/srv/static heval collectstatic --noinput --verbosity 0

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="heval" org.opencontainers.image.licenses="Apache-2.0"
# Pango lays out the PDF of a report, and the fonts have what its own do not: Chinese, Japanese, Korean and other scripts.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 fonts-droid-fallback \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --home-dir /srv/state --create-home --shell /usr/sbin/nologin heval
COPY --from=build /srv/venv /srv/venv
COPY --from=build /srv/static /srv/static
COPY --from=build /srv/heval /srv/heval
WORKDIR /srv/heval
ENV PATH=/srv/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DJANGO_SETTINGS_MODULE=heval_site.settings \
    HEVAL_HOME=/srv/state \
    STATIC_ROOT=/srv/static \
    MPLCONFIGDIR=/tmp/matplotlib \
    LISTEN=0.0.0.0 \
    PORT=8000
USER 10001
VOLUME /srv/state
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['PORT']}/healthz\", timeout=4)"]
CMD ["gunicorn", "-c", "python:heval_site.server", "heval_site.wsgi:application"]
