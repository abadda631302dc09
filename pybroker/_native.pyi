"""The whole contract with Rust: what `native/py` registers, typed and documented.

Sections, one per file of `native/py/src`, in alphabetical order.
"""
