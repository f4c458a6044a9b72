"""Commands that check, save, restore and move what a home folder holds."""
