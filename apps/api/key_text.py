"""The text of an API key (KY-1): how it is made, how a typing error shows, and the keyed digest that is stored of it."""

import hashlib
import hmac
import re
import secrets
import zlib

from django.conf import settings

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PATTERN = re.compile(r"th_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}")
ID_LENGTH, SECRET_LENGTH, CHECK_LENGTH = 12, 32, 6


def generate() -> str:
    """A new key's text: `th_<env>_<id>_<secret><check>`, 190 random bits of secret, a CRC32 in base 62 over all before it."""
    env = "test" if settings.DEBUG else "live"
    body = f"th_{env}_{_random(ID_LENGTH)}_{_random(SECRET_LENGTH)}"
    return body + check(body)


def check(body: str) -> str:
    """The CRC32 of the text before it, in six digits of base 62: a typing error is refused without looking the key up."""
    rest, digits = zlib.crc32(body.encode()), ""
    for _ in range(CHECK_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits


def well_formed(text: str) -> bool:
    return PATTERN.fullmatch(text) is not None and hmac.compare_digest(
        check(text[:-CHECK_LENGTH]), text[-CHECK_LENGTH:]
    )


def public_id(text: str) -> str:
    """The id in a well-formed key's text."""
    return text.split("_")[2]


def digest_now(text: str) -> tuple[str, str]:
    """The id of the current pepper, and the digest under it."""
    pepper = next(iter(settings.API_KEY_PEPPERS))
    return pepper, digest(text, pepper)


def digest(text: str, pepper_id: str) -> str:
    """The keyed digest of a whole key text. A pepper that was taken away verifies nothing any more."""
    pepper = settings.API_KEY_PEPPERS.get(pepper_id) or secrets.token_hex()
    return hmac.new(pepper.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))
