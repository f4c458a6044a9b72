"""Who may write, and what waits to be written: leases, and the queue of uploads."""

from citewell.adapters.sql.queue.leases import guard, several_write, sole_writer
from citewell.adapters.sql.queue.uploads import SqlUploads

__all__ = ["SqlUploads", "guard", "several_write", "sole_writer"]
