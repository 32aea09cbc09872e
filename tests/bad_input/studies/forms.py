"""A form of the admin is filled in, and it is stored or refused."""

from tests.admin_pages import changed, errors_of, form_of


def address_of(row) -> str:
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"


def save(client, row, **changes):
    address = address_of(row)
    return client.post(address, changed(form_of(client.get(address), f"{row._meta.model_name}_form"), **changes))


def saved(client, row, **changes) -> None:
    response = save(client, row, **changes)
    assert response.status_code == 302, errors_of(response)


def refused(client, row, said, **changes) -> None:
    """The form comes back with these words, and what is stored is what was."""
    before = type(row).objects.filter(pk=row.pk).values().get()
    response = save(client, row, **changes)
    assert response.status_code == 200 and said in errors_of(response), errors_of(response)
    assert type(row).objects.filter(pk=row.pk).values().get() == before
