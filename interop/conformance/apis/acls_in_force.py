"""What each API answers to users who may do one thing alone, or all but one, and to users with ACLs of each
kind: the ACL matrix.
"""

from __future__ import annotations

from interop.conformance.acl_matrix import matrix

globals().update({f"{told.api}_{told.name}": told for told in matrix()})
