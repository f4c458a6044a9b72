"""API keys as text: create, parse and compare them. Only the digest of a key is ever stored. Knows no database."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

_FORMAT = re.compile(r"cw_([0-9a-f]{16})_[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key: `text` is shown to its holder once; id and digest are stored."""

    id: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return key_digest(self.text)


def create_key() -> NewKey:
    """A random key, `cw_<public id>_<secret>`; the secret has 256 bits from the system's random source."""
    public_id = secrets.token_hex(8)
    return NewKey(public_id, f"cw_{public_id}_{secrets.token_hex(32)}")


def key_id(text: str) -> str | None:
    """The public id in a key; None if the text does not have the format of a key."""
    match = _FORMAT.fullmatch(text)
    return match[1] if match else None


def key_digest(text: str) -> str:
    """The SHA-256 digest of a key."""
    # Slow hashes are for passwords. This secret is too long to be guessed, however fast the hash.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def key_matches(text: str, digest: str) -> bool:
    """Whether the key has this digest, compared in constant time."""
    return hmac.compare_digest(key_digest(text), digest)
