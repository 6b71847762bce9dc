"""HTTP in production: `granian --interface wsgi config.wsgi:application`, as many workers as the machine has cores."""

from config import handler, startup

startup.prepare()
application = handler.Handler()
