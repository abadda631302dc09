"""Kernels of the record format, each written four times: pure Python, NumPy, Cython and Rust, side by side.

Owns the question what each language costs for the same bytes. Not imported by anything but its tests; the broker's
kernels live in `native/record/src`. Run: `make micro`.

Every implementation is a module with the functions of `kernels.Kernels`.
"""
