// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Block ops as lists of primitives over pieces of the block's scratch. A list of primitives is made the same way for
// sizing (a layout without memory), checking, costs and execution, so that these cannot disagree. A device's traits add
// to the last piece only, which products share: the other pieces lie where they lie without.

#include <optional>

#include "kernels/core/device_traits.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/attention/kv_write.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/experts/group_pairs.h"
#include "kernels/ops/experts/grouped_matmul.h"
#include "kernels/ops/fused/blocks.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/embedding.h"
#include "kernels/ops/rowwise/rms_norm.h"

namespace vitrine::kernels {

struct QkvProjectPrimitives {
    QkvProjectPrimitives(const QkvProject& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        if (norm) {
            visit(*norm);
        }
        visit(q);
        visit(k);
        visit(v);
        if (qNorm) {
            visit(*qNorm);
        }
        if (kNorm) {
            visit(*kNorm);
        }
        visit(ropeQ);
        visit(ropeK);
        if (write) {
            visit(*write);
        }
    }

    std::optional<RmsNorm> norm, qNorm, kNorm;
    Matmul q, k, v;
    Rope ropeQ, ropeK;
    std::optional<KvWrite> write;
    std::uint64_t bytes = 0;
};

struct OutProjectPrimitives {
    OutProjectPrimitives(const OutProject& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(product);
        if (norm) {
            visit(*norm);
            visit(*add);
        }
    }

    Matmul product;
    std::optional<RmsNorm> norm;
    std::optional<Add> add;
    std::uint64_t bytes = 0;
};

struct DenseMlpPrimitives {
    DenseMlpPrimitives(const DenseMlp& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        if (norm) {
            visit(*norm);
        }
        visit(gate);
        visit(up);
        if (down.out.empty()) {
            return;
        }
        visit(activation);
        visit(down);
        if (postNorm) {
            visit(*postNorm);
            visit(*add);
        }
    }

    std::optional<RmsNorm> norm, postNorm;
    Matmul gate, up, down;
    GatedActivation activation;
    std::optional<Add> add;
    std::uint64_t bytes = 0;
};

struct RoutePrimitives {
    RoutePrimitives(const Route& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(norm);
        visit(router);
        visit(topK);
    }

    RmsNorm norm;
    Matmul router;
    RouterTopK topK;
    std::uint64_t bytes = 0;
};

struct ExpertMlpPrimitives {
    ExpertMlpPrimitives(const ExpertMlp& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(gateUp);
        visit(activation);
        visit(down);
        visit(combine);
    }

    ExpertMatmul gateUp, down;
    GatedActivation activation;
    MoeCombine combine;
    std::uint64_t bytes = 0;
};

/// The same over rows expert by expert.
struct GroupedExpertPrimitives {
    GroupedExpertPrimitives(const ExpertMlp& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        visit(group);
        visit(gather);
        visit(gateUp);
        if (combine.out.empty()) {
            return;
        }
        visit(activation);
        visit(down);
        visit(combine);
    }

    GroupPairs group;
    GatherPairs gather;
    GroupedMatmul gateUp, down;
    GatedActivation activation;
    MoeCombine combine;
    std::uint64_t bytes = 0;
};

struct LmHeadPrimitives {
    LmHeadPrimitives(const LmHead& op, ScratchLayout layout, const DeviceTraits& traits);
    template <class Visit> void forEach(Visit&& visit) const {
        if (gather) {
            visit(*gather);
        }
        if (norm) {
            visit(*norm);
        }
        visit(head);
        if (cap) {
            visit(*cap);
        }
    }

    std::optional<Embedding> gather; ///< picks rows of x as an embedding picks rows of its table
    std::optional<RmsNorm> norm;
    Matmul head;
    std::optional<SoftCap> cap;
    std::uint64_t bytes = 0;
};

/// Runs a block op as its primitives: the reference, and the form that every backend can fall back to. `traits` are
/// those that the op's scratch was sized by, or less.
template <class Primitives, class Backend, class Op>
void executePrimitives(Backend& context, const Op& op, const DeviceTraits& traits) {
    const Primitives primitives(op, op.scratch.empty() ? ScratchLayout() : ScratchLayout(op.scratch.data), traits);
    primitives.forEach([&](const auto& part) { execute(context, part); });
}

/// Bytes of the scratch of a block op.
template <class Primitives, class Op> std::uint64_t primitiveBytes(const Op& op, const DeviceTraits& traits) {
    return Primitives(op, ScratchLayout(), traits).bytes;
}

template <class Primitives, class Op> void checkPrimitives(const OpCheck& rule, const Op& op) {
    const std::uint64_t bytes = primitiveBytes<Primitives>(op, DeviceTraits{});
    rule.scratch(op.scratch, bytes);
    const Primitives primitives(op, bytes == 0 ? ScratchLayout() : ScratchLayout(op.scratch.data), DeviceTraits{});
    primitives.forEach([](const auto& part) { check(part); });
}

template <class Primitives, class Op> Cost primitiveCost(const Op& op, const DeviceTraits& traits) {
    Cost sum;
    sum.launches = 0;
    sum.computeType = op.x.dtype;
    Primitives(op, ScratchLayout(), traits).forEach([&](const auto& part) { addCost(sum, cost(part, traits)); });
    return sum;
}

} // namespace vitrine::kernels
