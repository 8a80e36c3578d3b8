"""The suites of TLS 1.3 that a context offers.

OpenSSL has a call of its own for them, which Python before 3.15 does not make. It is made here in the library
that Python's own module is linked to, on the context that the module's object holds: `ctx` is the first
member of CPython's `PySSLContext`, from 3.6 on. The context is read back afterwards. Where the call cannot be
made, as in another Python or in one with OpenSSL inside its executable, that is said, and the context stays
as it was.
"""

from __future__ import annotations

import _ssl
import ctypes
import ssl
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

#: The releases of CPython whose `PySSLContext` has been looked at.
_KNOWN_RELEASES = ((3, 11), (3, 15))


class CannotChoose(ValueError):
    """The call cannot be made here."""


def choose_suites(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Have `context` offer these suites of TLS 1.3 alone, in this order.

    Raises:
        CannotChoose: see above.
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
        # The symbols of a library are those of the libraries that it needs as well.
        library = ctypes.CDLL(path)
        library.SSL_CTX_set_ciphersuites.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        library.ERR_clear_error.argtypes = []
        library.ERR_clear_error.restype = None
    except (OSError, AttributeError) as error:
        raise CannotChoose(str(error)) from error
    return library
