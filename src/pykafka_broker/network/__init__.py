"""Sockets: listeners, connections, dispatch, memory, and requests that wait."""
