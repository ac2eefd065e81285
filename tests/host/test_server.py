"""What every connection's socket is set to."""

from __future__ import annotations

import socket

import pytest

from omni_realtime_host.config_schema import Server
from omni_realtime_host.server import open_socket


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_small_events_are_sent_at_once_and_a_dead_peer_does_not_stay(host):
    with (
        open_socket(Server(host=host, port=0)) as listener,
        socket.create_connection(listener.getsockname()[:2]),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 80_000
