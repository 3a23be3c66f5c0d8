// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The block ops of latent attention as lists of primitives, see kernels/ops/fused/block_primitives.h.

#include <optional>
#include <vector>

#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/latent_blocks.h"

namespace vitrine::kernels {

struct LatentProjectPrimitives {
    LatentProjectPrimitives(const LatentProject& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        if (norm) {
            visit(*norm);
        }
        if (queryDown) {
            visit(*queryDown);
            visit(*queryNorm);
        }
        visit(query);
        visit(keyDown);
        visit(keyNorm);
        visit(ropeK);
        for (const Matmul& product : absorbed) {
            visit(product);
        }
        visit(copyQ);
        visit(ropeQ);
        if (write) {
            visit(*write);
        }
    }

    std::optional<RmsNorm> norm, queryNorm;
    std::optional<Matmul> queryDown;
    Matmul query, keyDown;
    RmsNorm keyNorm;
    std::vector<Matmul> absorbed; ///< of each head: W_UK^T q
    Cast copyQ;                   ///< the part of queries that is rotated, to its place beside what W_UK^T gives
    Rope ropeQ, ropeK;
    std::optional<KvWrite> write;
    std::uint64_t bytes = 0;
};

struct LatentOutPrimitives {
    LatentOutPrimitives(const LatentOut& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        for (const Matmul& product : values) {
            visit(product);
        }
        visit(out);
    }

    std::vector<Matmul> values; ///< of each head: W_UV x
    Matmul out;
    std::uint64_t bytes = 0;
};

} // namespace vitrine::kernels
