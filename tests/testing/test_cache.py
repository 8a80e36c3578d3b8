"""Where fetched things are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafka_broker.testing import cache


def test_a_checkout_keeps_them_at_its_top() -> None:
    assert cache.cache_folder() == Path(__file__).resolve().parents[2] / ".cache"


def test_an_installed_package_keeps_them_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "lib" / "pykafka_broker" / "testing" / "cache.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/me/caches")
    assert cache.cache_folder() == Path("/home/me/caches/pykafka-broker")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache.cache_folder() == Path("/home/me/.cache/pykafka-broker")
