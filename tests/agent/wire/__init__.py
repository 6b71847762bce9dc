"""Providers on this machine: real sockets, the makers' wire formats, their strictness, and a script for each request."""
