"""A module as its author writes it: one read and one write with its preview."""

from typing import Any

from apps.api import Context, Module, fingerprint, preview, row
from tests.host.shelf.models import Book

module = Module(key="shelf", name="Shelf")


@module.tool("shelf.list_books", scope="shelf:read", permission="shelf.view_book", annotations={"read_only": True})
def list_books(ctx: Context) -> dict[str, Any]:
    """The books by title, and who asks."""
    person = ctx.scope.person_id if ctx.scope else None
    return {"books": list(Book.objects.order_by("title").values("title", "copies")), "person": person}


@module.tool("shelf.set_copies", scope="shelf:write", permission="shelf.change_book")
def set_copies(ctx: Context, *, title: str, copies: int) -> dict[str, Any]:
    """Say how many copies of a book there are."""
    book, _ = Book.objects.update_or_create(title=title, defaults={"copies": copies})
    ctx.log("shelf.copies_set", "book", book.pk, {"copies": copies})
    return {"title": title, "copies": copies}


@set_copies.preview
def preview_copies(ctx: Context, *, title: str, copies: int) -> Any:
    now = dict(Book.objects.filter(title=title).values_list("title", "copies"))
    return preview(f"Set {title}.", [row(title, "copies", before=now.get(title), after=copies)]), fingerprint(
        [title], now
    )
