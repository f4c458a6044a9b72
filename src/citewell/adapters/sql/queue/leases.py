"""The right to write to a PostgreSQL that several processes and machines share: a lease on a project, or on everything.

A lease is a row that its holder renews; whoever dies loses it after LEASE_SECONDS. It is no advisory lock of a session:
that one is lost unnoticed with its connection, and behind PgBouncer the connection is somebody else's a moment later.
Every transaction of a holder begins by checking that it still has its lease, so that one who was thought dead cannot
write any more.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID, uuid4

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from citewell.adapters.sql.database import Database
from citewell.adapters.sql.tables import leases
from citewell.errors import IngestRunning, StoreUnavailable

_log = logging.getLogger("citewell.database")

LEASE_SECONDS = 30.0
_RENEW_SECONDS = 5.0
_POLL_SECONDS = 0.1
_EVERYTHING = "everything"
_GUARD = 0x6C65_6173_6573  # "leases"

_IN_PROGRESS = "ingestion already in progress; try again when it is done"


@asynccontextmanager
async def sole_writer(
    database: Database,
    project: UUID | None,
    *,
    place: str = "",
    wait: bool,
    on_wait: Callable[[], None],
    last_out: Callable[[AsyncConnection], Awaitable[None]],
) -> AsyncIterator[None]:
    """Hold the lease on a project, or with None on everything. SQLite needs none: its home folder is locked.

    While another process holds it: call `on_wait` once and wait, or raise IngestRunning. `place` names a lock that the
    caller holds: who took a lease under the same lock has died. `last_out` runs as the last holder of any lease leaves.
    """
    if database.dialect == "sqlite":
        yield
        return
    lease = _Lease(database, str(project) if project else _EVERYTHING, place)
    try:
        await lease.take(wait=wait, on_wait=on_wait)
        database.fence = lease.check
        renewing = asyncio.create_task(lease.renew())
        try:
            yield
        finally:
            database.fence = None
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
    finally:
        await lease.release(last_out)


async def guard(connection: AsyncConnection, *, shared: bool = False) -> None:
    """Until the end of the transaction: nobody takes or returns a lease, and unless `shared`, nobody else guards."""
    lock = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
    await connection.execute(select(lock(_GUARD)))


async def several_write(connection: AsyncConnection) -> bool:
    """Whether more than one process has a lease on a project. Only under `guard` does it stay so."""
    projects = select(func.count()).where(leases.c.name != _EVERYTHING)
    return (await connection.scalar(projects) or 0) > 1


class _Lease:
    def __init__(self, database: Database, name: str, place: str) -> None:
        self._database = database
        self._place = place
        self._holder = uuid4()
        self._name = name
        self._own = (leases.c.name == name, leases.c.holder == self._holder)

    async def take(self, *, wait: bool, on_wait: Callable[[], None]) -> None:
        notified = False
        while not await self._try(queue=wait):
            if not wait:
                raise IngestRunning(_IN_PROGRESS)
            if not notified:
                on_wait()
                notified = True
            await asyncio.sleep(_POLL_SECONDS)

    async def _try(self, *, queue: bool) -> bool:
        """Take the lease if it is free. Who wants everything and waits keeps out those that come later."""
        dead = or_(
            leases.c.expires_at < func.clock_timestamp(), (leases.c.place == self._place) & (leases.c.place != "")
        )
        # One that is being used in a transaction is locked: it is alive, however late it renews its lease.
        unused = select(leases.c.name).where(dead, leases.c.holder != self._holder).with_for_update(skip_locked=True)
        async with self._database.writing(fenced=False) as connection:
            await guard(connection)
            await connection.execute(delete(leases).where(leases.c.name.in_(unused)))
            rows = await connection.execute(select(leases.c.name).where(leases.c.holder != self._holder))
            others = {row.name for row in rows}
            blocked = bool(others) if self._name == _EVERYTHING else bool(others & {self._name, _EVERYTHING})
            if not blocked or (queue and self._name == _EVERYTHING and _EVERYTHING not in others):
                new = self._database.insert(leases).values(
                    name=self._name, holder=self._holder, place=self._place, expires_at=_soon()
                )
                await connection.execute(
                    new.on_conflict_do_update(index_elements=["name"], set_={"expires_at": new.excluded.expires_at})
                )
        return not blocked

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                async with asyncio.timeout(_RENEW_SECONDS), self._database.writing(fenced=False) as connection:
                    await connection.execute(update(leases).where(*self._own).values(expires_at=_soon()))
            except (StoreUnavailable, TimeoutError) as error:
                _log.warning("the right to write could not be renewed: %s", error or "no answer in time")

    async def check(self, connection: AsyncConnection) -> None:
        """Raise IngestRunning if another process has taken over; until the transaction ends, none can."""
        held = select(leases.c.name).where(*self._own).with_for_update(read=True, key_share=True)
        if await connection.scalar(held) is None:
            raise IngestRunning(
                f"another process has taken over: this one had not reported to the database for {LEASE_SECONDS:.0f} "
                "seconds; what it had not published yet is not lost, run it again"
            )

    async def release(self, last_out: Callable[[AsyncConnection], Awaitable[None]]) -> None:
        try:
            async with self._database.writing(fenced=False) as connection:
                await guard(connection)
                released = await connection.execute(delete(leases).where(*self._own))
                others = select(func.count()).where(leases.c.name != _EVERYTHING)
                if released.rowcount and not await connection.scalar(others):
                    await last_out(connection)
        except StoreUnavailable as error:
            _log.warning("the right to write was not returned, and ends in %.0f seconds: %s", LEASE_SECONDS, error)


def _soon() -> object:
    return func.clock_timestamp() + timedelta(seconds=LEASE_SECONDS)
