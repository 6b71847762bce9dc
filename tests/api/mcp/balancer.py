"""nginx before several processes of the program: each request goes to one of them at random, and its log says which one got what."""

import contextlib
import json
import os
import shutil
import urllib.request
from collections.abc import Sequence

from tests.services import Missing, Program, Service

_CONFIGURATION = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
{user}
events {{}}
http {{
    log_format chosen escape=json '{{"process": "$upstream_addr", "body": "$request_body"}}';
    access_log {folder}/chosen.log chosen;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream processes {{
        random;
        {servers}
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://processes;
            proxy_set_header Host $http_host;
        }}
    }}
}}
"""


class Balancer(Service):
    """Starts after the programs and keeps nothing of a client."""

    name = "nginx"

    def __init__(self, programs: Sequence[Program]) -> None:
        super().__init__()
        servers = "\n        ".join(f"server 127.0.0.1:{program.port};" for program in programs)
        # Its workers write into a folder of root's.
        user = "user root;" if os.geteuid() == 0 else ""
        text = _CONFIGURATION.format(folder=self.folder, user=user, port=self.port, servers=servers)
        (self.folder / "nginx.conf").write_text(text)

    @property
    def url(self) -> str:
        """Without a last slash."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        """In the foreground, with nothing of the machine's own nginx."""
        binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
        if binary is None:
            raise Missing("nginx is not installed.")
        return [binary, "-e", "stderr", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    def answers(self) -> bool:
        """Health of one of the programs."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:  # noqa: S310 - loopback
            return int(answer.status) == 200
        return False

    def chosen(self) -> list[str]:
        """The processes that the tool calls so far were given to, in order."""
        lines = map(json.loads, (self.folder / "chosen.log").read_text().splitlines())
        return [line["process"] for line in lines if '"tools/call"' in line["body"]]
