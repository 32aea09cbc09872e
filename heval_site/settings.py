"""Settings, only from the environment.

docs: reference/environment.
Without DATABASE_URL the application is *embedded*: SQLite and generated secrets in HEVAL_HOME, on one machine without
another server. With DATABASE_URL it is *deployed*, and nothing is generated: a missing secret, host or address stops
the start.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from .runtime import environment as env
from .runtime import logs
from .runtime.home import DATABASE_NAME, get_or_create_site_secret, home_folder

CHECKOUT = Path(__file__).resolve().parent.parent
# In a wheel, the templates and static files are inside this package.
DATA = CHECKOUT if (CHECKOUT / "manage.py").exists() else Path(__file__).resolve().parent / "_data"

env.refuse_old_names()
DATABASE_URL = env.url("DATABASE_URL", "postgres", "postgresql")
EMBEDDED = not DATABASE_URL
HEVAL_HOME = home_folder(create=EMBEDDED)
DEBUG = env.boolean("DEBUG", False)
if DEBUG and not EMBEDDED:
    raise ImproperlyConfigured(
        "DEBUG must not be true if DATABASE_URL is set: its error pages show settings and answers."
    )
REDIS_URL = env.url("REDIS_URL", "redis", "rediss", "unix")


def get_or_create_secret(name: str) -> str:
    """Return a secret from the environment; the embedded mode generates and stores its own."""
    return env.required_secret(name, get_or_create_site_secret(name.lower()) if EMBEDDED and not env.text(name) else "")


SECRET_KEY = get_or_create_secret("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.text_list("SECRET_KEY_FALLBACKS")
# Pseudonyms of annotators and the encryption of their panel ids depend on this key. Losing it loses the link to people;
# changing it counts them twice.
PSEUDONYM_KEY = get_or_create_secret("PSEUDONYM_KEY")
if SECRET_KEY == PSEUDONYM_KEY:
    raise ImproperlyConfigured("PSEUDONYM_KEY must not be the SECRET_KEY. Generate another one: heval secret")

PORT = env.integer("PORT", 8000, 1, 65535)
# Only the web server uses them. Each command, such as the doctor, refuses a wrong value.
WEB_WORKERS = env.integer("WEB_WORKERS", 2, 1, 64)
WEB_THREADS = env.integer("WEB_THREADS", 4, 1, 64)
LISTEN = env.network_address("LISTEN", "127.0.0.1" if EMBEDDED else "0.0.0.0")  # noqa: S104 - a container is reached through its proxy
SITE_URL = env.site_origin("SITE_URL", f"http://127.0.0.1:{PORT}" if EMBEDDED else "")
SECURE = SITE_URL.startswith("https://")
ALLOWED_HOSTS = env.text_list("ALLOWED_HOSTS") or [
    urlsplit(SITE_URL).hostname or "",
    *(env.LOOPBACK if EMBEDDED else ()),
]
if any(host.startswith(("*", ".")) or "/" in host for host in ALLOWED_HOSTS):
    raise ImproperlyConfigured("ALLOWED_HOSTS must list the host names of this site, without *, schemes or paths.")
ALLOWED_HOSTS = [f"[{host}]" if ":" in host and not host.startswith("[") else host for host in ALLOWED_HOSTS]
CSRF_TRUSTED_ORIGINS = [SITE_URL]
# The address for orders to panels: the panel, or a stand-in on this machine for a rehearsal.
PROLIFIC_API = env.official_or_local_stand_in_origin("PROLIFIC_API", "https://api.prolific.com")
TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", 0, 0, 5)

# Sites that may frame a study and receive its last form.
EXTERNAL_QUESTION_SITES = tuple(env.origins("EXTERNAL_QUESTION_SITES"))
# Allowed sites of researchers' return addresses; any https site if empty.
RETURN_SITES = tuple(site.lower() for site in env.origins("RETURN_SITES"))

# Networks inside ours that webhooks may reach, also without encryption.
WEBHOOK_NETWORKS = env.networks("WEBHOOK_NETWORKS")
EMAIL_URL = env.url("EMAIL_URL", "smtp", "smtp+tls", "smtp+ssl")
SENDS_MAIL = bool(EMAIL_URL)
if SENDS_MAIL:
    globals().update(environ.Env.email_url_config(EMAIL_URL))
    DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM") or f"heval@{urlsplit(SITE_URL).hostname}"
EMAIL_TIMEOUT = 10

INSTALLED_APPS = [
    "heval_site.apps.HevalAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "studies.apps.StudiesConfig",
    "annotators.apps.AnnotatorsConfig",
    "analysis.apps.AnalysisConfig",
    "boards.apps.BoardsConfig",
    "heval_site.apps.HevalSiteConfig",
]

# All but the first three skip annotators' paths: no cookie, session or user there.
MIDDLEWARE = [
    "heval_site.middleware.Security",
    "heval_site.middleware.StaticFiles",
    "heval_site.middleware.DatabaseUnavailable",
    "heval_site.middleware.Sessions",
    "heval_site.middleware.Common",
    "heval_site.middleware.Csrf",
    "heval_site.middleware.Authentication",
    "heval_site.middleware.Messages",
    "heval_site.middleware.Framing",
    "heval_site.middleware.ContentSecurityPolicy",
    "heval_site.middleware.Lockout",
]
# These checks look for middlewares by name, but ours are subclasses. Their behaviour is tested instead.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003", "axes.W002"]
ROOT_URLCONF = "heval_site.urls"
WSGI_APPLICATION = "heval_site.wsgi.application"
TEMPLATES = [
    {
        # This comes first and knows only the annotators' folders.
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [DATA / "templates"],
        "OPTIONS": {"environment": "annotators.pages.jinja.environment"},
    },
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [DATA / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES: dict[str, dict[str, Any]]
if EMBEDDED:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": HEVAL_HOME / DATABASE_NAME,
            # Opening a connection for each request would cost as much as the rest of a page, with its settings and
            # final write.
            "CONN_MAX_AGE": None,
            # In a file, as in production: the shared memory database of tests locks whole tables.
            "TEST": {"NAME": HEVAL_HOME / "test.sqlite3"},
            # IMMEDIATE: a read transaction that starts to write would fail at once instead of waiting.
            # FULL: an acknowledged answer survives a power cut.
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA mmap_size=134217728;"
                "PRAGMA cache_size=-20000;PRAGMA temp_store=MEMORY",
            },
        }
    }
else:
    from psycopg_pool.base import AttemptWithBackoff  # imports the driver, which SQLite does not need

    # The pool doubles its pauses: a server that was away for 20 s would be noticed up to 30 s after its return.
    AttemptWithBackoff.INITIAL_DELAY, AttemptWithBackoff.DELAY_BACKOFF = 0.5, 1.0
    DATABASES = {"default": environ.Env.db_url_config(DATABASE_URL)}
    if not DATABASES["default"]["NAME"]:
        raise ImproperlyConfigured("DATABASE_URL must name a database: postgres://user:password@host:5432/name")
    DATABASES["default"] |= {
        "CONN_MAX_AGE": 0,
        # Replace a connection that died with a restarted server, instead of using it for a request.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,
            "tcp_user_timeout": 10_000,  # milliseconds: detects a server that vanished
            # The server plans a repeated statement once, instead of each time.
            "server_side_binding": True,
            "prepare_threshold": 5,
            **DATABASES["default"].get("OPTIONS", {}),
            "pool": {
                "min_size": 1,
                "max_size": env.integer("DATABASE_POOL", WEB_THREADS, 1, 100),
                "timeout": 5,
            },
        },
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if REDIS_URL:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}
else:
    # Shared by all processes, because a limit counted per process is not a limit.
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "heval_cache"}}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
FORMAT_MODULE_PATH = ["heval_site.runtime.formats"]

STATIC_URL = "static/"
STATICFILES_DIRS = [DATA / "static"]
# Collected files have names with a hash and are cached forever. The image collects them at build time and sets
# STATIC_ROOT, `heval up` collects them into its home. What was not collected is served from its source folder.
HAS_COLLECTED_STATIC = bool(env.text("STATIC_ROOT"))
STATIC_ROOT = Path(env.text("STATIC_ROOT") or HEVAL_HOME / "static")
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
MEDIA_ROOT = Path(env.text("MEDIA_ROOT") or HEVAL_HOME / "media")
# Who withdrew, for backups that are older. Outside the database, which a restored backup replaces.
ERASURES_FILE = MEDIA_ROOT.parent / "erasures.jsonl"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "heval_site.runtime.static_files.CollectedFilesStorage"
    },
}
FILE_UPLOAD_PERMISSIONS = 0o640

DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
PASSWORD_RESET_TIMEOUT = 3 * 24 * 60 * 60  # of an invitation
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_CLIENT_IP_CALLABLE = "heval_site.middleware.client_ip_or_ipv6_network"
AXES_RESET_ON_SUCCESS = True

SESSION_COOKIE_AGE = 8 * 60 * 60
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_NAME = "__Host-heval" if SECURE else "heval"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = SECURE and env.boolean("SSL_REDIRECT", True)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = env.integer("HSTS_SECONDS", 31536000 if SECURE else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = env.boolean("HSTS_SUBDOMAINS", SECURE)
if TRUSTED_PROXY_COUNT:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        # The admin's pages use style attributes; annotators' pages have a stricter policy of their own.
        "style-src": ["'self'", "'unsafe-inline'"],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "analysis.api.tokens.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
        "analysis.api.tokens.OperatorAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["analysis.api.permissions.IsResearcher"],
    "DEFAULT_THROTTLE_CLASSES": ["analysis.api.permissions.TokenThrottle"],
    "DEFAULT_THROTTLE_RATES": {"api": "600/min", "export": "30/min", "public": "120/min", "submit": "30/min"},
    "DEFAULT_PARSER_CLASSES": ["analysis.api.renderers.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["analysis.api.renderers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "analysis.api.renderers.JSONOnlyNegotiation",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "analysis.api.renderers.exception_handler",
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "heval",
    "DESCRIPTION": "Human-evaluation studies: their designs, stimuli, answers and analyses.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SERVE_INCLUDE_SCHEMA": False,
    "OAS_VERSION": "3.1.0",
    "SERVERS": [{"url": "/", "description": "The site that serves this description."}],
    # Without the usual hook, which gives sets of values names that change with other sets.
    "POSTPROCESSING_HOOKS": ["analysis.api.words.add_words"],
}

# Jobs are rows; the broker only wakes workers. Without a broker, `heval up` and `heval worker` check for waiting jobs
# themselves.
CELERY_BROKER_URL = env.url("CELERY_BROKER_URL", "redis", "rediss", "amqp", "amqps") or REDIS_URL

LOG_FORMAT = env.choice("LOG_FORMAT", "plain" if EMBEDDED else "json", "plain", "json")
LOGGING = logs.logging_config(LOG_FORMAT)
