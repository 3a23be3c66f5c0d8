# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Sliding window: a query sees the keys at most `window` positions away, on both sides."""
# example: sliding_window(128)


def sliding_window(window: int):
    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx - kv_idx).abs() <= window

    return mask_mod
