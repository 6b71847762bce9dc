"""UI-2: every text that people read can be translated, and is, in each language that the program has."""

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import translation
from django.utils.translation import gettext, ngettext

from apps.agent import notices
from tests import translations

PAGE = """{% load i18n %}<h1 title="{% translate "A title" %}">{% translate "Hello" %}</h1>
{% blocktranslate count n=n %}{{ n }} thing{% plural %}{{ n }} things{% endblocktranslate %}"""
CODE = 'from django.utils.translation import gettext as _\nprint(_("Stay %(where)s"))\n'


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A small program with a page, its translations complete."""
    for folder in translations.SOURCES:
        (tmp_path / folder).mkdir()
    (tmp_path / "templates" / "page.html").write_text(PAGE)
    (tmp_path / "apps" / "code.py").write_text(CODE)
    translations.update("de", tmp_path)
    texts = {
        '"A title"': '"Ein Titel"',
        '"Hello"': '"Hallo"',
        '"Stay %(where)s"': '"Bleiben Sie %(where)s"',
    }
    path = tmp_path / "locale/de/LC_MESSAGES/django.po"
    text = path.read_text()
    for original, german in texts.items():
        text = text.replace(f'msgid {original}\nmsgstr ""', f"msgid {original}\nmsgstr {german}")
    text = text.replace('msgstr[0] ""', 'msgstr[0] "%(n)s Ding"').replace('msgstr[1] ""', 'msgstr[1] "%(n)s Dinge"')
    path.write_text(text)
    translations.update("de", tmp_path)
    return tmp_path


def _change(house: Path, old: str, new: str) -> None:
    path = house / "locale/de/LC_MESSAGES/django.po"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize("language", translations.LANGUAGES)
def test_every_text_is_translated(language: str) -> None:
    assert translations.faults(language) == [], "run `make messages`, and translate what it names"


@pytest.mark.parametrize("language", translations.LANGUAGES)
def test_what_django_reads_is_what_was_written(language: str) -> None:
    assert translations.is_compiled(language), "run `make messages`"


def test_no_word_of_a_page_stands_outside_of_a_translation() -> None:
    assert translations.untranslated() == []


def test_the_languages_are_those_of_the_settings() -> None:
    assert {name for name, _ in settings.LANGUAGES} == {settings.LANGUAGE_CODE, *translations.LANGUAGES}


# --- That these tests can fail ----------------------------------------------------------------------------------------


def test_a_complete_house_has_no_fault(house: Path) -> None:
    assert translations.faults("de", house) == []
    assert translations.is_compiled("de", house)
    assert translations.untranslated(house) == []


def test_a_new_text_is_missing_until_it_is_translated(house: Path) -> None:
    (house / "apps" / "more.py").write_text('_("New")\n')
    assert translations.faults("de", house) == ["missing: New"]
    translations.update("de", house)
    assert translations.faults("de", house) == ["empty: New"]


def test_a_doubtful_text_is_a_fault(house: Path) -> None:
    _change(house, 'msgid "Hello"', '#, fuzzy\nmsgid "Hello"')
    assert translations.faults("de", house) == ["fuzzy: Hello"]


@pytest.mark.parametrize("german", ["Bleiben Sie", "Bleiben Sie %(wo)s", "Bleiben Sie %(where)s %(when)s"])
def test_another_placeholder_is_a_fault(house: Path, german: str) -> None:
    _change(house, "Bleiben Sie %(where)s", german)
    assert translations.faults("de", house) == ["placeholders: Stay %(where)s"]


def test_half_of_a_plural_is_a_fault(house: Path) -> None:
    _change(house, "%(n)s Dinge", "")
    assert translations.faults("de", house) == ["empty: %(n)s thing"]


def test_a_text_that_is_gone_is_left_over_until_the_next_update(house: Path) -> None:
    (house / "apps" / "code.py").write_text("")
    assert translations.faults("de", house) == ["left over: Stay %(where)s"]
    translations.update("de", house)
    assert translations.faults("de", house) == []


def test_a_change_that_was_not_compiled_is_found(house: Path) -> None:
    _change(house, "Hallo", "Guten Tag")
    assert not translations.is_compiled("de", house)


@pytest.mark.parametrize(
    "html",
    [
        "<p>Plain words</p>",
        '<input placeholder="Your name">',
        '<p data-said="It is over">',
        '<a title="Go there">x</a>',
    ],
)
def test_a_word_outside_of_a_translation_is_found(house: Path, html: str) -> None:
    (house / "templates" / "bare.html").write_text(html)
    assert len(translations.untranslated(house)) == 1


# --- What people get --------------------------------------------------------------------------------------------------


def test_a_text_is_german_for_who_reads_german() -> None:
    with translation.override("de"):
        assert gettext("Try again") == "Noch einmal versuchen"
        assert ngettext("%(count)d result", "%(count)d results", 2) % {"count": 2} == "2 Ergebnisse"


@pytest.mark.parametrize("code", notices.TEXTS)
def test_a_stored_notice_is_read_in_the_readers_language(code: str) -> None:
    values = {"limit": "0.50", "tool": "Set prices. All"}
    stored = notices.text(
        code, **{name: value for name, value in values.items() if f"{{{name}}}" in notices.TEXTS[code]}
    )
    assert notices.shown(stored) == stored
    with translation.override("de"):
        german = gettext(notices.TEXTS[code])
        for name, value in values.items():
            german = german.replace(f"{{{name}}}", value)
        assert notices.shown(stored) == german != stored


def test_a_notice_that_nobody_knows_any_more_stays_as_it_was_stored() -> None:
    with translation.override("de"):
        assert notices.shown("Ended: an older reason.") == "Ended: an older reason."
        assert notices.shown("") == ""


@pytest.mark.django_db
def test_a_page_speaks_the_language_that_the_browser_asks_for() -> None:
    german = Client(headers={"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}).get("/sign-in/")
    assert 'lang="de"' in german.content.decode()
    assert "Anmelden" in german.content.decode()
    assert "Accept-Language" in german["Vary"]
    other = Client(headers={"Accept-Language": "fr"}).get("/sign-in/")
    assert 'lang="en"' in other.content.decode()


@pytest.mark.django_db
def test_machines_are_answered_in_one_language() -> None:
    german = Client(headers={"Accept-Language": "de"}).get("/api/v1/tools")
    english = Client().get("/api/v1/tools")
    assert german.json()["title"] == english.json()["title"]
    assert "Accept-Language" not in german.get("Vary", "")
