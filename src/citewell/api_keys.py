"""API keys as text: made, taken apart, compared. Knows no database; only a digest of a key is ever kept."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

_SHAPE = re.compile(r"cw_([0-9a-f]{16})_[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key: `text` is for its holder, once; the id and the digest are for us."""

    id: str
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        return key_digest(self.text)


def create_key() -> NewKey:
    """A key that nobody can guess: `cw_<public id>_<secret>`, the secret 256 bits of the system's randomness."""
    identity = secrets.token_hex(8)
    return NewKey(identity, f"cw_{identity}_{secrets.token_hex(32)}")


def key_id(text: str) -> str | None:
    """The public id in what somebody presents as a key; None where it has not the shape of one."""
    found = _SHAPE.fullmatch(text)
    return found[1] if found else None


def key_digest(text: str) -> str:
    # Slow hashes are for passwords; this secret cannot be guessed, however fast the guessing.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def key_matches(text: str, kept: str) -> bool:
    """Whether this is the key whose digest was kept; takes as long for a near miss as for any other."""
    return hmac.compare_digest(key_digest(text), kept)
