"""A study's page is opened and saved in tests."""

from tests.admin_pages import changed, form_of, study_url


def page(client, study):
    return client.get(study_url(study))


def save(client, study, **changes):
    data = changed(form_of(page(client, study), "study_form"), **changes)
    return client.post(study_url(study), data, follow=True)
