"""A fixture project for the official MCP conformance suite (MC-5): its tools run through the real executor."""
