"""Commands that check, save and restore a home folder."""
