// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/block_primitives.h"

#include "kernels/ops/fused/primitive_parts.h"

namespace vitrine::kernels {

QkvProjectPrimitives::QkvProjectPrimitives(const QkvProject& op, ScratchLayout layout, const DeviceTraits& traits) {
    TensorView x = op.x;
    if (!op.norm.weight.empty()) {
        x = keptOr(op.normed, layout, op.x.dtype, op.x.shape);
        norm = normOf(op.norm, op.x, x);
    }
    const TensorView rawQ = op.rawQ.empty() ? op.outQ : op.rawQ;
    const TensorView rawK = op.rawK.empty() ? op.outK : op.rawK;
    q = productOf(op.q, x, flatRows(rawQ));
    k = productOf(op.k, x, flatRows(rawK));
    v = productOf(op.v, x, flatRows(op.outV));
    shareScratch(layout, traits, q, k, v);
    if (!op.qNorm.weight.empty()) {
        qNorm = normOf(op.qNorm, headRows(rawQ), headRows(op.outQ));
    }
    if (!op.kNorm.weight.empty()) {
        kNorm = normOf(op.kNorm, headRows(rawK), headRows(op.outK));
    }
    ropeQ = Rope{op.outQ, op.positions, op.inverseFrequency, op.ropeScale};
    ropeK = Rope{op.outK, op.positions, op.inverseFrequency, op.ropeScale};
    const bool rounds = !op.cache.keys.empty() && bitsOf(op.cache.keys.dtype) < bitsOf(op.outK.dtype);
    if (op.writeCache || rounds) {
        write = KvWrite{op.outK, op.outV, op.sequence, op.positions, op.cache, rounds, op.writeCache};
    }
    bytes = layout.bytes();
}

OutProjectPrimitives::OutProjectPrimitives(const OutProject& op, ScratchLayout layout, const DeviceTraits& traits) {
    product = productOf(op.o, op.x, op.out);
    if (op.postNorm.weight.empty()) {
        product.residual = op.residual;
    } else {
        const TensorView branch = keptOr(op.branch, layout, op.out.dtype, op.out.shape);
        const TensorView normed = op.branch.empty() ? branch : layout.take(op.out.dtype, op.out.shape);
        product.out = branch;
        norm = normOf(op.postNorm, branch, normed);
        add = Add{op.residual, normed, op.out};
    }
    shareScratch(layout, traits, product);
    bytes = layout.bytes();
}

DenseMlpPrimitives::DenseMlpPrimitives(const DenseMlp& op, ScratchLayout layout, const DeviceTraits& traits) {
    TensorView x = op.x;
    if (!op.norm.weight.empty()) {
        x = keptOr(op.normed, layout, op.x.dtype, op.x.shape);
        norm = normOf(op.norm, op.x, x);
    }
    const std::int64_t tokens = op.x.shape[0];
    const std::int64_t width = op.gate.weight.outFeatures();
    const TensorView both = keptOr(op.gateUp, layout, op.x.dtype, Shape{tokens, 2 * width});
    const bool whole = !op.out.empty() || !op.branch.empty();
    const TensorView active = whole ? layout.take(op.x.dtype, Shape{tokens, width}) : TensorView{};
    TensorView gateOut = both;
    gateOut.shape = Shape{tokens, width};
    gateOut.strides[0] = 2 * width;
    TensorView upOut = gateOut;
    upOut.data = static_cast<std::byte*>(both.data) + bytesOf(both.dtype, width);
    gate = productOf(op.gate, x, gateOut);
    up = productOf(op.up, x, upOut);
    activation = GatedActivation{both, active, op.activation, GateLayout::Halves};
    down = productOf(op.down, active, op.out);
    if (op.postNorm.weight.empty()) {
        down.residual = op.residual.empty() && !op.partial ? op.x : op.residual;
    } else if (op.out.empty()) {
        down.out = op.branch;
    } else {
        const TensorView branch = keptOr(op.branch, layout, op.out.dtype, op.out.shape);
        const TensorView normed = op.branch.empty() ? branch : layout.take(op.out.dtype, op.out.shape);
        down.out = branch;
        postNorm = normOf(op.postNorm, branch, normed);
        add = Add{op.x, normed, op.out};
    }
    if (whole) {
        shareScratch(layout, traits, gate, up, down);
    } else {
        shareScratch(layout, traits, gate, up);
    }
    bytes = layout.bytes();
}

RoutePrimitives::RoutePrimitives(const Route& op, ScratchLayout layout, const DeviceTraits& traits) {
    norm = normOf(op.norm, op.x, op.normed);
    const TensorView logits =
        keptOr(op.logits, layout, DType::F32, Shape{op.x.shape[0], op.router.weight.outFeatures()});
    router = productOf(op.router, op.normed, logits);
    topK = RouterTopK{logits, op.ids, op.weights, op.order, op.normalize, op.groups, op.given, op.differing};
    shareScratch(layout, traits, router);
    bytes = layout.bytes();
}

ExpertMlpPrimitives::ExpertMlpPrimitives(const ExpertMlp& op, ScratchLayout layout, const DeviceTraits&) {
    const std::int64_t pairs = op.ids.shape.count();
    const std::int64_t both = op.gateUp.weight.outFeatures();
    const TensorView gated = layout.take(op.x.dtype, Shape{pairs, both});
    const TensorView active = layout.take(op.x.dtype, Shape{pairs, both / 2});
    const TensorView results = layout.take(op.x.dtype, Shape{pairs, op.down.weight.outFeatures()});
    gateUp.x = op.x;
    gateUp.ids = op.ids;
    gateUp.weight = op.gateUp.weight;
    gateUp.bias = op.gateUp.bias;
    gateUp.out = gated;
    activation = GatedActivation{gated, active, op.activation, op.layout, op.alpha, op.limit};
    down.x = active;
    down.xPerToken = false;
    down.ids = op.ids;
    down.weight = op.down.weight;
    down.bias = op.down.bias;
    down.out = results;
    combine = MoeCombine{results, op.weights, op.residual, op.out, {}, op.allExperts > 0 ? op.ids : TensorView{}};
    shareScratch(layout, DeviceTraits{}, gateUp, down);
    bytes = layout.bytes();
}

GroupedExpertPrimitives::GroupedExpertPrimitives(const ExpertMlp& op, ScratchLayout layout,
                                                 const DeviceTraits& traits) {
    const std::int64_t pairs = op.ids.shape.count();
    const std::int64_t experts = op.gateUp.weight.experts();
    const std::int64_t both = op.gateUp.weight.outFeatures();
    ExpertRows rows = op.kept;
    if (rows.empty()) {
        rows = {layout.take(DType::I32, Shape{experts + 1}), layout.take(DType::I32, Shape{pairs}),
                layout.take(DType::I32, Shape{pairs}), layout.take(op.x.dtype, Shape{pairs, op.x.shape[1]}),
                layout.take(op.x.dtype, Shape{pairs, both})};
    }
    group = GroupPairs{op.ids, rows.starts, rows.pairs, rows.places, {}};
    if (const std::uint64_t counts = scratch(group, traits); counts > 0) {
        group.scratch = layout.takeBytes(counts);
    }
    gather = GatherPairs{op.x, rows.pairs, rows.x};
    gateUp.x = rows.x;
    gateUp.starts = rows.starts;
    gateUp.linear = op.gateUp;
    gateUp.out = rows.gateUp;
    if (op.out.empty()) {
        shareScratch(layout, traits, gateUp);
        bytes = layout.bytes();
        return;
    }
    const TensorView active = layout.take(op.x.dtype, Shape{pairs, both / 2});
    const TensorView results = layout.take(op.x.dtype, Shape{pairs, op.down.weight.outFeatures()});
    activation = GatedActivation{rows.gateUp, active, op.activation, op.layout, op.alpha, op.limit};
    down.x = active;
    down.starts = rows.starts;
    down.linear = op.down;
    down.out = results;
    combine =
        MoeCombine{results, op.weights, op.residual, op.out, rows.places, op.allExperts > 0 ? op.ids : TensorView{}};
    shareScratch(layout, traits, gateUp, down);
    bytes = layout.bytes();
}

LmHeadPrimitives::LmHeadPrimitives(const LmHead& op, ScratchLayout layout, const DeviceTraits& traits) {
    TensorView x = op.x;
    if (!op.rows.empty()) {
        x = layout.take(op.x.dtype, Shape{op.rows.shape[0], op.x.shape[1]});
        gather = Embedding{op.rows, op.x, x, 1};
    }
    if (!op.norm.weight.empty()) {
        const TensorView normed = op.rows.empty() ? layout.take(op.x.dtype, x.shape) : x;
        norm = normOf(op.norm, x, normed);
        x = normed;
    }
    head = productOf(op.head, x, op.logits);
    if (op.softCap > 0) {
        cap = SoftCap{op.logits, op.softCap};
    }
    shareScratch(layout, traits, head);
    bytes = layout.bytes();
}

} // namespace vitrine::kernels
