// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/layer_dropout.h"

namespace vitrine::engine {

namespace {

constexpr std::uint64_t kLinearsOfALayer = 16; ///< more than there are
constexpr std::uint64_t kHeadStream = ~std::uint64_t{0};

} // namespace

DecoderLayer LayerDropout::applied(const DecoderLayer& layer, std::int64_t index, std::int64_t firstRow) const {
    DecoderLayer out = layer;
    if (probability <= 0) {
        return out;
    }
    std::uint64_t stream = static_cast<std::uint64_t>(index) * kLinearsOfALayer;
    // Stacks of experts come without dropout.
    kernels::LinearView* down = layer.config.moe ? nullptr : &out.down;
    for (kernels::LinearView* linear : {&out.q, &out.k, &out.v, &out.o, &out.gate, &out.up, &out.router, down}) {
        if (linear != nullptr) {
            linear->adapter.dropout = {static_cast<float>(probability), seed, stream, firstRow};
        }
        ++stream;
    }
    return out;
}

kernels::LinearView LayerDropout::appliedToHead(const kernels::LinearView& head, std::int64_t firstRow) const {
    kernels::LinearView out = head;
    if (probability > 0) {
        out.adapter.dropout = {static_cast<float>(probability), seed, kHeadStream, firstRow};
    }
    return out;
}

std::uint64_t dropoutSeed(std::uint64_t seed, std::int64_t step, std::int64_t microBatch) {
    // The finaliser of SplitMix64 (Steele, Lea and Flood 2014) over numbers that differ.
    std::uint64_t value = seed;
    for (const std::int64_t part : {step, microBatch}) {
        value += 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(part) + 1);
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
        value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
        value ^= value >> 31;
    }
    return value;
}

} // namespace vitrine::engine
