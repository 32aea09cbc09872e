"""A study with answers of every kind, to be answered while things break. Run in a site's environment: PLACES; prints its door."""

import sys

import django

if __name__ == "__main__":
    django.setup()
    from tests.builders import panel, spa_study

    print(f"/e/{panel(spa_study(target_n=int(sys.argv[1]))).key}/?who=")
