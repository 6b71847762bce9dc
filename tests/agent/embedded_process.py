"""`config.serve` with a signal: at SIGUSR1 25 threads of its own tell of every message that there is, as tasks do."""

import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from config import serve


def main() -> int:
    signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=_tell, daemon=True).start())
    return serve.main()


def _tell() -> None:
    # Set up by now.
    from django.db import connections

    from apps.agent import events
    from apps.agent.models import Message

    def tell(row: Any) -> None:
        events.message_added(*row)
        connections.close_all()

    rows = list(Message.objects.order_by("number").values_list("conversation_id", "pk"))
    connections.close_all()
    with ThreadPoolExecutor(25) as pool:
        list(pool.map(tell, rows))


if __name__ == "__main__":
    sys.exit(main())
