"""Mail to one person with a link into the site, written and sent beside the answer by one thread of this process.

So nobody can tell by the time of an answer whether a mail went out, and a mail server that is silent holds up no page. A
mail that can't be sent, or that a crash takes along, is lost: whoever waits for it asks for another one.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import BoundedSemaphore

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from apps.accounts.models import User

logger = logging.getLogger(__name__)

WAITING = 200

_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mail")
_room = BoundedSemaphore(WAITING)


def send(topic: str, to: User, *, path: str, deliver: bool = True) -> None:
    """The mail of this topic (templates/accounts/mail/) with a link to the path. Without delivery it is the same work for nobody.

    The link leads to BASE_URL: the Host header is what a client says.
    """
    if not _room.acquire(blocking=False):
        logger.error("Too many mails wait: the mail %s to %s is dropped.", topic, to.pk)
        return
    # The copy knows the language of the page and the id of the request.
    _thread.submit(copy_context().run, _work, topic, to, path, deliver)


def _work(topic: str, to: User, path: str, deliver: bool) -> None:  # noqa: FBT001 - passed on by position
    try:
        message = _written(topic, to, path)
        if deliver:
            message.send()
    except Exception:  # whatever it is, nobody else would hear of it
        logger.exception("The mail %s to %s was not sent.", topic, to.pk)
    finally:
        _room.release()


def _written(topic: str, to: User, path: str) -> EmailMessage:
    facts = {"person": to, "site": settings.BASE_URL, "link": settings.BASE_URL + path}
    subject = " ".join(render_to_string(f"accounts/mail/{topic}_subject.txt", facts).split())
    text = render_to_string(f"accounts/mail/{topic}.txt", facts)
    # No machine is to answer it: "out of office" would go round in circles.
    return EmailMessage(subject, text, to=[to.email], headers={"Auto-Submitted": "auto-generated"})
