"""`sslmode` in DATABASE_URL means what it means to every PostgreSQL client, against a real server with TLS."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from citewell.adapters.sql import Database
from citewell.errors import SettingsError, StoreUnavailable
from tests.fakes.pgbouncer import PgBouncer
from tests.fakes.postgres import CannotStart, PostgresServer

pytestmark = pytest.mark.anyio


class Authority:
    """A certificate authority of our own: `certificate` is its file."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._write("", self._sign(name, self._key.public_key(), is_authority=True))

    def certify(self, host: str) -> tuple[Path, Path]:
        """The files of a certificate for a host, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        path = self._folder / f"{host}.key"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return self._write(f".{host}", self._sign(host, key.public_key(), is_authority=False)), path

    def _sign(self, name: str, key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> x509.Certificate:
        def named(common: str) -> x509.Name:
            return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

        now = datetime.now(UTC)
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=is_authority,
            crl_sign=is_authority,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        host: x509.GeneralName = x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        return (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named(self._name))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectAlternativeName([host]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def _write(self, suffix: str, certificate: x509.Certificate) -> Path:
        path = self._folder / f"{self._name}{suffix}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    folder = tmp_path_factory.mktemp("authorities")
    return Authority(folder, "right"), Authority(folder, "wrong")


@pytest.fixture(scope="module", params=["postgresql", "pgbouncer"])
def secured(
    request: pytest.FixtureRequest, authorities: tuple[Authority, Authority], postgres_server: PostgresServer
) -> Iterator[str]:
    """The URL of a database that is offered with a certificate for 127.0.0.1: by the server, or by PgBouncer."""
    certificate, key = authorities[0].certify("127.0.0.1")
    try:
        if request.param == "postgresql":
            server = PostgresServer(certificate=certificate, key=key)
            url, remove = server.create(), server.remove
        else:
            bouncer = PgBouncer(postgres_server, certificate=certificate, key=key)
            url, remove = bouncer.url(postgres_server.create()), bouncer.remove
    except CannotStart as error:
        pytest.skip(str(error))
    yield url
    remove()


async def is_secured(url: str) -> bool:
    database = await Database.open(url)
    try:
        async with database.reading() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            return driver._transport.get_extra_info("ssl_object") is not None
    finally:
        await database.close()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("sslmode=disable", False),
        ("sslmode=allow", False),
        ("sslmode=prefer", True),
        ("sslmode=require", True),
        ("sslmode=require&sslrootcert={right}", True),
        ("sslmode=verify-ca&sslrootcert={right}", True),
        ("sslmode=verify-full&sslrootcert={right}", True),
    ],
)
async def test_a_connection_is_as_secure_as_its_url_says(
    secured: str, authorities: tuple[Authority, Authority], options: str, expected: bool
) -> None:
    options = options.format(right=authorities[0].certificate)
    assert await is_secured(f"{secured}?{options}") is expected


@pytest.mark.parametrize(
    "options",
    [
        "sslmode=verify-ca&sslrootcert={wrong}",
        "sslmode=verify-full&sslrootcert={wrong}",
        "sslmode=require&sslrootcert={wrong}",
        "sslmode=verify-full",
        "sslmode=verify-ca&sslrootcert=system",
    ],
)
async def test_a_server_that_no_trusted_authority_vouches_for_is_sent_nothing(
    secured: str, authorities: tuple[Authority, Authority], options: str
) -> None:
    options = options.format(wrong=authorities[1].certificate)
    with pytest.raises(StoreUnavailable, match="certificate verify failed") as raised:
        await is_secured(f"{secured}?{options}")
    assert "secret" not in str(raised.value)


async def test_only_verify_full_wants_the_name_of_the_host(
    secured: str, authorities: tuple[Authority, Authority]
) -> None:
    url = secured.replace("127.0.0.1", "localhost")
    root = f"sslrootcert={authorities[0].certificate}"
    assert await is_secured(f"{url}?sslmode=verify-ca&{root}")
    with pytest.raises(StoreUnavailable, match="Hostname mismatch"):
        await is_secured(f"{url}?sslmode=verify-full&{root}")


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
async def test_a_server_without_tls_is_refused_where_tls_is_wanted(postgres_url: str, mode: str) -> None:
    with pytest.raises(StoreUnavailable, match="SSL"):
        await is_secured(f"{postgres_url}?sslmode={mode}")


async def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="sslrootcert cannot be read"):
        await Database.open(f"postgresql://a@127.0.0.1/b?sslmode=verify-full&sslrootcert={tmp_path / 'none'}")
    (tmp_path / "broken").write_text("no certificate")
    with pytest.raises(SettingsError, match="sslrootcert"):
        await Database.open(f"postgresql://a@127.0.0.1/b?sslmode=verify-full&sslrootcert={tmp_path / 'broken'}")
