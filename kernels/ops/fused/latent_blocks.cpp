// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/latent_blocks.h"

#include "kernels/ops/fused/latent_primitives.h"
#include "kernels/ops/fused/primitive_parts.h"

namespace vitrine::kernels {

namespace {

/// Elements [begin, begin + count) of one head of (tokens, heads, dim), as rows.
TensorView headColumns(const TensorView& tensor, std::int64_t head, std::int64_t begin, std::int64_t count) {
    const TensorView part = slice(slice(tensor, 1, head, head + 1), 2, begin, begin + count);
    TensorView rows{part.data, part.dtype, Shape{tensor.shape[0], count}, {}};
    rows.strides[0] = tensor.stride0();
    return rows;
}

/// The last `count` elements of every head of a contiguous (tokens, heads, dim), as rows.
TensorView lastOfHeads(const TensorView& tensor, std::int64_t count) {
    const std::int64_t dim = tensor.shape[2];
    TensorView rows = slice(tensor, 2, dim - count, dim);
    rows.shape = Shape{tensor.shape[0] * tensor.shape[1], count};
    rows.strides = {};
    rows.strides[0] = dim;
    return rows;
}

/// The rows of `up` that make a head's key, or its value.
TensorView rowsOfHead(const LatentHeads& heads, std::int64_t head, bool value) {
    const std::int64_t begin = head * heads.rows();
    return value ? sliceRows(heads.up, begin + heads.nope, begin + heads.rows())
                 : sliceRows(heads.up, begin, begin + heads.nope);
}

/// The products of heads run one after the other over the same scratch.
void shareScratchOf(std::vector<Matmul>& products, ScratchLayout& layout, const DeviceTraits& traits) {
    shareScratch(layout, traits, products.front()); // all have the same shapes
    for (Matmul& product : products) {
        product.scratch = products.front().scratch;
    }
}

void checkHeads(const OpCheck& rule, const LatentHeads& heads, const TensorView& rows, std::string_view field) {
    rule.shape(heads.up, "heads.up", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(heads.up, "heads.up");
    rule.contiguous(heads.up, "heads.up");
    rule.require(heads.heads > 0 && heads.up.shape[0] % heads.heads == 0, "heads.up", "its rows are no whole heads");
    rule.require(heads.nope > 0 && heads.value() > 0, "heads.nope", "a head has no key or no value");
    rule.shape(rows, field, {OpCheck::kAny, heads.heads, OpCheck::kAny});
    rule.contiguous(rows, field);
    rule.require(rows.shape[2] >= heads.latent(), field, "narrower than a latent");
}

} // namespace

LatentProjectPrimitives::LatentProjectPrimitives(const LatentProject& op, ScratchLayout layout,
                                                 const DeviceTraits& traits) {
    const std::int64_t tokens = op.x.shape[0];
    const std::int64_t rope = op.rope();
    const std::int64_t latent = op.heads.latent();
    TensorView x = op.x;
    if (!op.norm.weight.empty()) {
        x = layout.take(op.x.dtype, op.x.shape);
        norm = normOf(op.norm, op.x, x);
    }
    TensorView low = x;
    if (!op.queryDown.weight.empty()) {
        low = layout.take(op.x.dtype, Shape{tokens, op.queryDown.weight.outFeatures()});
        queryDown = productOf(op.queryDown, x, low);
        queryNorm = normOf(op.queryNorm, low, low);
    }
    const TensorView q = layout.take(op.x.dtype, Shape{tokens, op.heads.heads, op.heads.nope + rope});
    query = productOf(op.query, low, flatRows(q));
    keyDown = productOf(op.keyDown, x, flatRows(op.outK));
    if (queryDown) {
        shareScratch(layout, traits, *queryDown, query, keyDown);
    } else {
        shareScratch(layout, traits, query, keyDown);
    }
    const TensorView latents = headColumns(op.outK, 0, 0, latent);
    keyNorm = normOf(op.keyNorm, latents, latents);
    ropeK = Rope{slice(op.outK, 2, latent, latent + rope), op.positions, op.inverseFrequency, op.ropeScale};
    ropeQ = Rope{slice(op.outQ, 2, latent, latent + rope), op.positions, op.inverseFrequency, op.ropeScale};
    ropeK.interleaved = ropeQ.interleaved = op.interleaved;
    absorbed.reserve(static_cast<std::size_t>(op.heads.heads));
    for (std::int64_t head = 0; head < op.heads.heads; ++head) {
        Matmul product;
        product.x = headColumns(q, head, 0, op.heads.nope);
        product.weight = denseWeight(rowsOfHead(op.heads, head, false), true);
        product.out = headColumns(op.outQ, head, 0, latent);
        absorbed.push_back(product);
    }
    shareScratchOf(absorbed, layout, traits);
    copyQ = Cast{lastOfHeads(q, rope), lastOfHeads(op.outQ, rope)};
    const bool rounds = !op.cache.keys.empty() && bitsOf(op.cache.keys.dtype) < bitsOf(op.outK.dtype);
    if (op.writeCache || rounds) {
        write = KvWrite{op.outK, op.outK, op.sequence, op.positions, op.cache, rounds, op.writeCache};
    }
    bytes = layout.bytes();
}

LatentOutPrimitives::LatentOutPrimitives(const LatentOut& op, ScratchLayout layout, const DeviceTraits& traits) {
    const std::int64_t tokens = op.x.shape[0];
    const TensorView all = layout.take(op.x.dtype, Shape{tokens, op.heads.heads, op.heads.value()});
    values.reserve(static_cast<std::size_t>(op.heads.heads));
    for (std::int64_t head = 0; head < op.heads.heads; ++head) {
        Matmul product;
        product.x = headColumns(op.x, head, 0, op.heads.latent());
        product.weight = denseWeight(rowsOfHead(op.heads, head, true));
        product.out = headColumns(all, head, 0, op.heads.value());
        values.push_back(product);
    }
    shareScratchOf(values, layout, traits);
    out = productOf(op.o, flatRows(all), op.out);
    out.residual = op.residual;
    shareScratch(layout, traits, out);
    bytes = layout.bytes();
}

void check(const LatentProject& op) {
    const OpCheck rule(LatentProject::kName);
    rule.shape(op.x, "x", {OpCheck::kAny, OpCheck::kAny});
    checkHeads(rule, op.heads, op.outQ, "outQ");
    rule.shape(op.inverseFrequency, "inverseFrequency", {OpCheck::kAny});
    const std::int64_t width = op.heads.latent() + op.rope();
    rule.shape(op.outQ, "outQ", {op.x.shape[0], op.heads.heads, width});
    rule.shape(op.outK, "outK", {op.x.shape[0], 1, width});
    rule.require(op.queryDown.weight.empty() == op.queryNorm.weight.empty(), "queryNorm",
                 "queryDown and queryNorm must be set together");
    checkPrimitives<LatentProjectPrimitives>(rule, op);
}

Cost cost(const LatentProject& op, const DeviceTraits& traits) {
    return primitiveCost<LatentProjectPrimitives>(op, traits);
}

std::uint64_t scratch(const LatentProject& op, const DeviceTraits& traits) {
    return primitiveBytes<LatentProjectPrimitives>(op, traits);
}

void check(const LatentOut& op) {
    const OpCheck rule(LatentOut::kName);
    checkHeads(rule, op.heads, op.x, "x");
    checkPrimitives<LatentOutPrimitives>(rule, op);
}

Cost cost(const LatentOut& op, const DeviceTraits& traits) {
    return primitiveCost<LatentOutPrimitives>(op, traits);
}

std::uint64_t scratch(const LatentOut& op, const DeviceTraits& traits) {
    return primitiveBytes<LatentOutPrimitives>(op, traits);
}

} // namespace vitrine::kernels
