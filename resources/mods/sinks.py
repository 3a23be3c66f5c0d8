# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Attention sinks: the first keys stay visible beside a causal sliding window (StreamingLLM, arXiv:2309.17453)."""
# example: attention_sinks(4, 1024)


def attention_sinks(sinks: int, window: int):
    """`window` keys including the query's own, and the first `sinks` keys."""

    def mask_mod(b, h, q_idx, kv_idx):
        return (q_idx >= kv_idx) & ((kv_idx < sinks) | (q_idx - kv_idx < window))

    return mask_mod
