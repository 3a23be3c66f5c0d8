// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Block ops as lists of primitives over pieces of the block's scratch. A plan is made the same way for sizing (a layout
// without memory), checking, costs and execution, so that these cannot disagree.

#include <optional>

#include "kernels/ops/attention/kv_write.h"
#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/fused/blocks.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/rowwise/elementwise.h"
#include "kernels/ops/rowwise/embedding.h"

namespace vitrine::kernels {

struct QkvProjectPlan {
    QkvProjectPlan(const QkvProject& op, ScratchLayout layout);
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

struct OutProjectPlan {
    OutProjectPlan(const OutProject& op, ScratchLayout layout);
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

struct DenseMlpPlan {
    DenseMlpPlan(const DenseMlp& op, ScratchLayout layout);
    template <class Visit> void forEach(Visit&& visit) const {
        if (norm) {
            visit(*norm);
        }
        visit(gate);
        visit(up);
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

struct RoutePlan {
    RoutePlan(const Route& op, ScratchLayout layout);
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

struct ExpertMlpPlan {
    ExpertMlpPlan(const ExpertMlp& op, ScratchLayout layout);
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

struct LmHeadPlan {
    LmHeadPlan(const LmHead& op, ScratchLayout layout);
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

/// Runs a block op as its primitives: the reference, and the form that every backend can fall back to.
template <class Plan, class Backend, class Op> void executePlan(Backend& context, const Op& op) {
    const Plan plan(op, op.scratch.empty() ? ScratchLayout() : ScratchLayout(op.scratch.data));
    plan.forEach([&](const auto& part) { execute(context, part); });
}

} // namespace vitrine::kernels
