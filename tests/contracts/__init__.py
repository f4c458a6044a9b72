"""One suite per port; every adapter passes the same tests."""
