"""The keys of model endpoints at rest (TU-7): sealed under MODEL_KEY_SECRETS, for one endpoint at one address and no other.

A sealed key is `<id of the secret>.<base64>`: AES-256-GCM, bound to what `about` says. The first secret seals, the others still open; one
that was taken away opens nothing any more. Whoever copies a sealed key to another row, or changes the address of its row, has nothing.
"""

import base64
import os
import re
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

MOST = 500
_NONCE = 12
# What an HTTP header carries as it is.
_PLAIN = re.compile(rf"[!-~]{{1,{MOST}}}")


class Unopened(Exception):
    """The sealed key can't be opened: its secret is gone, or it was sealed for something else."""


def is_plain(key: str) -> bool:
    """Whether a text can be a provider's key."""
    return _PLAIN.fullmatch(key) is not None


def seal(key: str, *, about: str) -> str:
    """The key as the row keeps it."""
    secret = next(iter(settings.MODEL_KEY_SECRETS))
    nonce = os.urandom(_NONCE)
    sealed = _cipher(settings.MODEL_KEY_SECRETS[secret]).encrypt(nonce, key.encode(), about.encode())
    return f"{secret}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"


def open_(sealed: str, *, about: str) -> str:
    """The key. Raises Unopened."""
    name, _, text = sealed.rpartition(".")
    secret = settings.MODEL_KEY_SECRETS.get(name)
    if secret is None:
        raise Unopened
    try:
        data = base64.urlsafe_b64decode(text.encode())
        return _cipher(secret).decrypt(data[:_NONCE], data[_NONCE:], about.encode()).decode()
    except (ValueError, InvalidTag):
        raise Unopened from None


def is_current(sealed: str) -> bool:
    """Whether the secret that new keys get has sealed it."""
    return sealed.rpartition(".")[0] == next(iter(settings.MODEL_KEY_SECRETS))


@lru_cache(maxsize=8)
def _cipher(secret: str) -> AESGCM:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"tollhouse model keys").derive(secret.encode())
    return AESGCM(derived)
