# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Causal attention: a query sees itself and what came before it."""
# example: causal_mask
# example: causal


def causal_mask(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


causal = causal_mask
