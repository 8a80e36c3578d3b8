"""`NamedTuple` as in `typing`, made without looking at the annotations.

Under `from __future__ import annotations` every annotation is text, and `typing.NamedTuple` compiles each of
them. For the values of this package that took 23 ms of a start of 230 ms, and 0.4 MB (CPython 3.11). Type
checkers see the class of `typing`, for that is what they are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple
    from typing import Generic

    class _NamedTupleMeta(type):
        """Makes a tuple class of the fields that a class body declares."""

        def __new__(meta, name, bases, members):
            fields = members.pop("__annotations__", {})
            has_default = [field in members for field in fields]
            if has_default != sorted(has_default):
                raise TypeError(f"{name}: a non-default field follows one that has a default")
            defaults = [members.pop(field) for field in fields if field in members]
            made = namedtuple(name, fields, defaults=defaults, module=members.pop("__module__"))
            made.__bases__ = tuple([tuple if base is NamedTuple else base for base in bases])
            made.__annotations__ = made.__new__.__annotations__ = fields
            if Generic in bases:
                made.__class_getitem__ = classmethod(Generic.__class_getitem__.__func__)
            for member, value in members.items():
                setattr(made, member, value)
            if Generic in bases:
                made.__init_subclass__()
            return made

    NamedTuple = type.__new__(_NamedTupleMeta, "NamedTuple", (), {})
