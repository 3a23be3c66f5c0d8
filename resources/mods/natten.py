# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
"""Neighborhood attention (NATTEN) in two dimensions: a query sees a window around it that stays inside the image (arXiv:2204.07143)."""
# example: generate_natten(16, 16, 5, 5)
# example: generate_tiled_natten(16, 16, 5, 5, 4, 4)


def generate_natten(canvas_w: int, canvas_h: int, kernel_w: int, kernel_h: int):
    reach_w = kernel_w // 2
    reach_h = kernel_h // 2

    def near(q, kv, reach, extent):
        center = q.clamp(reach, extent - 1 - reach)
        return (center - kv).abs() <= reach

    def mask_mod(b, h, q_idx, kv_idx):
        rows = near(q_idx // canvas_w, kv_idx // canvas_w, reach_w, canvas_w)
        columns = near(q_idx % canvas_w, kv_idx % canvas_w, reach_h, canvas_h)
        return rows & columns

    return mask_mod


def generate_tiled_natten(W: int, H: int, K_W: int, K_H: int, T_W: int, T_H: int):
    """The positions run through tiles of T_W by T_H, so that neighbours share blocks."""

    def place(position):
        tile, inside = position // (T_W * T_H), position % (T_W * T_H)
        tile_y, tile_x = tile // (W // T_W), tile % (W // T_W)
        return tile_x * T_W + inside % T_W, tile_y * T_H + inside // T_W

    def near(q, kv, reach, extent):
        return (q.clamp(reach, extent - 1 - reach) - kv).abs() <= reach

    def mask_mod(b, h, q_idx, kv_idx):
        q_x, q_y = place(q_idx)
        kv_x, kv_y = place(kv_idx)
        return near(q_x, kv_x, K_W // 2, W) & near(q_y, kv_y, K_H // 2, H)

    return mask_mod
