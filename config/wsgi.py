"""HTTP in production: `granian --interface wsgi config.wsgi:application`, as many workers as the machine has cores."""

from django.core.handlers.wsgi import WSGIHandler

from config import startup

startup.prepare()
application = WSGIHandler()
