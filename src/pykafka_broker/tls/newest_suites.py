"""The suites of TLS 1.3 that a context offers.

OpenSSL sets them with `SSL_CTX_set_ciphersuites`, which Python before 3.15 does not offer. It is called here
in the library that the module `_ssl` is linked to, on the context inside Python's object: `ctx` is the first
member of CPython's `PySSLContext` since 3.6. The suites are read back afterwards. In another Python, or in
one with OpenSSL inside its executable, `CannotChoose` is raised, and the context stays as it was.
"""

from __future__ import annotations

import _ssl
import ctypes
import ssl
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

#: The releases of CPython, the last excluded, whose `PySSLContext` has been verified.
_KNOWN_RELEASES = ((3, 11), (3, 15))


class CannotChoose(ValueError):
    """The suites of TLS 1.3 cannot be chosen with this Python."""


def choose_suites(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Make `context` offer only these suites of TLS 1.3, in this order.

    Raises:
        CannotChoose: this Python cannot.
        ValueError: OpenSSL does not have one of them.
    """
    names = ":".join(suites)
    if hasattr(context, "set_ciphersuites"):
        try:
            context.set_ciphersuites(names)
        except ssl.SSLError as error:
            raise ValueError(f"OpenSSL does not have all of {', '.join(suites)}") from error
        return
    library = _library()
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    is_set = library.SSL_CTX_set_ciphersuites(pointer, names.encode())
    library.ERR_clear_error()
    if not is_set:
        raise ValueError(f"OpenSSL does not have all of {', '.join(suites)}")
    offered = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.3"]
    if offered != list(suites):
        raise ValueError(f"the suites of TLS 1.3 are {', '.join(offered)} and not {', '.join(suites)}")


@cache
def _library() -> Any:
    """The library that `_ssl` calls."""
    lowest, too_high = _KNOWN_RELEASES
    path = getattr(_ssl, "__file__", None)
    if sys.implementation.name != "cpython" or not lowest <= sys.version_info[:2] < too_high or path is None:
        raise CannotChoose("this Python is not known to have them")
    try:
        # Symbols of the libraries that `_ssl` is linked to are found through it.
        library = ctypes.CDLL(path)
        library.SSL_CTX_set_ciphersuites.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        library.ERR_clear_error.argtypes = []
        library.ERR_clear_error.restype = None
    except (OSError, AttributeError) as error:
        raise CannotChoose(str(error)) from error
    return library
