# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Sliding window and causal: a query sees itself and the `window_size` keys before it (Mistral)."""
# example: generate_sliding_window(1024)
# example: sliding_window_causal(17)


def generate_sliding_window(window_size: int):
    def looks_back(b, h, q_idx, kv_idx):
        return q_idx - kv_idx <= window_size

    return and_masks(causal_mask, looks_back)


def sliding_window_causal(window_size: int):
    return generate_sliding_window(window_size)
