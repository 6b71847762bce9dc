"""Settings → API as a browser has it: the fields of the form as the HTML gives them, changed, sent by one of the buttons."""

import html
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

from django.test import Client

from apps.activity.models import Entry
from apps.api.models import Setting
from tests.api import factories

PAGE = "/admin/api/setting/"


@dataclass
class Sheet:
    """The form that a client has open. The boxes are named by the form and the name that they stand for."""

    client: Client
    fields: list[tuple[str, str]]
    address: str = PAGE

    def tick(self, field: str, value: str = "on") -> "Sheet":
        self.fields.append((field, value))
        return self

    def untick(self, field: str, value: str = "on") -> "Sheet":
        self.fields.remove((field, value))
        return self

    def fill(self, field: str, value: str) -> "Sheet":
        self.fields = [pair for pair in self.fields if pair[0] != field] + [(field, value)]
        return self

    def has(self, field: str, value: str = "on") -> bool:
        return (field, value) in self.fields

    def send(self, button: str = "review", *, follow: bool = False, **headers: str) -> Any:
        """The answer to one of the buttons `review`, `save` and `back`."""
        data: dict[str, list[str]] = {button: ["1"]}
        for name, value in self.fields:
            data.setdefault(name, []).append(value)
        return self.client.post(self.address, data, follow=follow, headers=headers)

    def save(self, **headers: str) -> Any:
        """Review, then save what the review carries on; the page after that. A refused review is the answer."""
        review = self.send("review", follow=True, **headers)
        if b"Save these changes" not in review.content:
            return review
        return Sheet(self.client, fields_of(review), self.address).send("save", follow=True, **headers)


def open_sheet(client: Client, address: str = PAGE) -> Sheet:
    """The page's form as it is now."""
    return Sheet(client, fields_of(client.get(address)), address)


def fields_of(answer: Any) -> list[tuple[str, str]]:
    """What a browser would send of the form that is posted, but for its buttons."""
    found = _Fields()
    found.feed(answer.content.decode())
    return found.fields


def sign_in(client: Client) -> Client:
    """As somebody who may change settings, and nothing else."""
    client.force_login(factories.make_owner(is_staff=True, permissions=["api.change_setting"]))
    return client


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def lines_of(answer: Any) -> list[str]:
    """The changes that the page asks about."""
    return [str(line) for line in answer.context["lines"]]


def stored() -> dict[str, Any]:
    return dict(Setting.objects.values_list("name", "value"))


def entries() -> list[Entry]:
    """Of changes of the settings, in their order."""
    return list(Entry.objects.filter(action="api.settings_changed").order_by("created_at"))


class _Fields(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fields: list[tuple[str, str]] = []
        self.is_inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self.is_inside = given.get("method") == "post" and given.get("id") not in ("logout-form",)
        if tag == "input" and self.is_inside and _is_sent(given):
            self.fields.append((str(given["name"]), given.get("value") or "on" * (given["type"] == "checkbox")))

    def handle_endtag(self, tag: str) -> None:
        self.is_inside = self.is_inside and tag != "form"


def _is_sent(given: dict[str, str | None]) -> bool:
    if given.get("type") == "submit" or "disabled" in given or "name" not in given:
        return False
    return given.get("name") != "csrfmiddlewaretoken" and (given.get("type") != "checkbox" or "checked" in given)
