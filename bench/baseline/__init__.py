"""What the gate is compared with: a Django project as fast as DRF can be, whose views do one query, one INSERT, or a handler's work."""
