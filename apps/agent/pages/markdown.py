"""A model's words as HTML: Markdown without HTML of its own, without pictures, and with links that lead to a page which shows their host.

What comes out is cleaned once more by an allow-list, and would be stopped by the policy of the page if it still could do something.
"""

from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import nh3
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

# More of one block is shown as it is: nobody reads it by its colours.
MOST_COLOURED = 20_000

_TAGS = {"a", "blockquote", "br", "code", "del", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong", "ul"}
_TAGS |= {"h1", "h2", "h3", "h4", "h5", "h6", "table", "tbody", "td", "th", "thead", "tr"}
_ATTRIBUTES = {"a": {"href"}, "span": {"class"}, "ol": {"start"}, "td": {"class"}, "th": {"class"}}
_FORMATTER: Any = HtmlFormatter(nowrap=True, classprefix="hl-")


@lru_cache(maxsize=512)
def render(text: str) -> SafeString:
    """The text as HTML that is safe to show."""
    html = nh3.clean(
        _rendered(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=set(),
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308 - cleaned by the allow-list above


def _rendered(text: str) -> str:
    found = _parser()
    env: dict[str, Any] = {}
    tokens = found.parse(text, env)
    for token in tokens:
        # A column that stands at the right says so by a style, which the policy of the page does not let in.
        if token.type in ("th_open", "td_open") and token.attrs.pop("style", "") == "text-align:right":
            token.attrSet("class", "number")
    return str(found.renderer.render(tokens, found.options, env))


def leads_away(url: str) -> bool:
    """Whether the address is one of the web, with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    found = MarkdownIt("commonmark", {"html": False, "highlight": _coloured}).enable(["table", "strikethrough"])
    found.disable("image")
    found.validateLink = leads_away  # type: ignore[method-assign]  # the library's own way to set it
    found.add_render_rule("link_open", _link_open)
    return found


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
) -> str:
    """To the page that shows where it leads."""
    address = f"{reverse('chat:leave')}?{urlencode({'to': str(tokens[index].attrGet('href') or '')})}"
    return f'<a href="{escape(address)}">'


def _coloured(code: str, language: str, _: str) -> str:
    if not language or len(code) > MOST_COLOURED:
        return ""
    try:
        lexer = get_lexer_by_name(language.strip().lower()[:40])
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, _FORMATTER))
