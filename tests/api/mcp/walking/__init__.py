"""A project's app whose tools report how far they are."""
