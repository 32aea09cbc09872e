"""The lines of subscriptions to events."""

from django.test import override_settings
from django.urls import reverse

from annotators.events import subscriptions
from studies.models import EventDelivery, EventSubscription
from tests.admin_pages import logged_in
from tests.messages.forms.scenarios import bare, me, said, says_refused
from tests.messages.lines import only_informs


def heard(**options):
    return subscriptions.subscribe(bare(), me(), ["closed"], **{"url": "https://example.org/", **options})[0]


def reader():
    user = me()
    user.email = "ann@example.org"
    user.save()
    return user


@override_settings(SENDS_MAIL=True)
def mail_twice():
    study = bare()
    for _ in range(2):
        subscriptions.subscribe(study, reader(), ["closed"])


def pressed(study, **data):
    return said(logged_in(reader()).post(reverse("study_events", args=[study.pk]), data, follow=True))


@override_settings(SENDS_MAIL=True)
def mail_chosen():
    return pressed(bare(), events=["closed"])


def deleted():
    one = heard()
    return pressed(one.study, delete=one.pk)


def tried():
    one = heard()
    return pressed(one.study, test=one.pk)


def again():
    row = subscriptions.send_test(heard(), me())
    EventDelivery.objects.update(next_at=None)
    return pressed(row.subscription.study, again=row.pk)


def one_too_many():
    one = heard()
    EventSubscription.objects.bulk_create(
        EventSubscription(study=one.study, by=me(), url="https://example.org/", secret=b"x")
        for _ in range(subscriptions.MAX_SUBSCRIPTIONS)
    )
    subscriptions.subscribe(one.study, me(), ["closed"], url="https://example.org/")


def deleted_twice():
    one = heard()
    for row in (one, EventSubscription.objects.get(pk=one.pk)):
        subscriptions.unsubscribe(row, me())


def sent_twice():
    subscriptions.send_test(heard(), me())
    subscriptions.send_again(EventDelivery.objects.get(), me())


FORMS = {
    "heval sends mail to": only_informs(mail_chosen),
    "Nothing more is sent": only_informs(deleted),
    "The event is sent": only_informs(again),
    "A test event": only_informs(tried),
    "A study has at most … subscriptions": says_refused(one_too_many),
    "You get mail about": says_refused(mail_twice),
    "This subscription is deleted": says_refused(deleted_twice),
    "This event is still": says_refused(sent_twice),
}
