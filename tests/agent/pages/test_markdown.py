"""A model's words as HTML: what is drawn, and that nothing of it can do, load or lead anywhere by itself (C11)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from apps.agent.pages import markdown

ALLOWED = re.compile(
    r"</?(?:a|blockquote|br|code|del|em|h[1-6]|hr|li|ol|p|pre|s|span|strong|table|tbody|td|th|thead|tr|ul)\b"
)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**a** *b* ~~c~~ `d`", "<p><strong>a</strong> <em>b</em> <s>c</s> <code>d</code></p>"),
        ("3. x\n4. y", '<ol start="3">\n<li>x</li>\n<li>y</li>\n</ol>'),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>"),
        (
            "[on](https://a.example.org/?x=1&y=2)",
            'href="/chat/leave/?to=https%3A%2F%2Fa.example.org%2F%3Fx%3D1%26y%3D2"',
        ),
        ("| a | b |\n|---|--:|\n| 1 | 2 |", '<th class="number">b</th>'),
        ("```python\nif x: pass\n```", '<span class="hl-k">if</span>'),
        ("```nonsense\nif <b>\n```", "<pre><code>if &lt;b&gt;\n</code></pre>"),
        ("```\nplain\n```", "<pre><code>plain\n</code></pre>"),
    ],
)
def test_markdown_is_drawn(text: str, html: str) -> None:
    assert html in markdown.render(text)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![x](https://evil.example.org/pixel.png)",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](//evil.example.org)",
        "[x](/sign-out/)",
        "[x](vbscript:x)",
        "[x](https://)",
        "[x]: javascript:alert(1)\n\n[x]",
        "<javascript:alert(1)>",
        "<style>*{display:none}</style><iframe src=https://evil.example.org></iframe>",
        '<a href="https://evil.example.org" onclick=x>y</a>',
        '```"><img src=x onerror=alert(1)>\ncode\n```',
        "| a |\n|:-:|\n| <svg onload=alert(1)> |",
        "&lt;script&gt; &#60;script&#62;",
        "<!-- --><form action=/x><input autofocus onfocus=alert(1)>",
        "\x00<script>\x00",
    ],
)
def test_what_could_do_something_is_text(text: str) -> None:
    html = markdown.render(text)
    assert _strange(html) == []
    assert all(to.startswith("/chat/leave/?to=http") for to in re.findall(r'<a [^>]*href="([^"]*)"', html))


@given(some.text(alphabet="<>!\"'[]()*`|-# \n&;:/=ahjsvripton", max_size=200))
def test_whatever_is_written_only_harmless_elements_come_out(text: str) -> None:
    assert _strange(markdown.render(text)) == []


def test_a_very_long_block_is_not_coloured() -> None:
    code = "x = 1\n" * (markdown.MOST_COLOURED // 5)
    assert "hl-" not in markdown.render(f"```python\n{code}```")


def _strange(html: str) -> list[str]:
    """The tags that are not among the allowed ones, and those with an attribute that does something."""
    tags = re.findall(r"<[^>]*>", html)
    return [tag for tag in tags if not ALLOWED.match(tag) or re.search(r"\s(?!href=|class=|start=|rel=)[\w-]+=", tag)]
