// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/document_mask.h"

#include <algorithm>
#include <array>

#include "kernels/program/causal_blocks.h"
#include "kernels/program/program_builder.h"

namespace vitrine::engine {

namespace {

/// kv_idx >= document_start[q_idx]
kernels::Program sameDocumentMask() {
    kernels::ProgramBuilder builder;
    const std::array query = {builder.input(kernels::ProgramOp::Query)};
    const std::int32_t starts = builder.capture({"document_start", kernels::ProgramType::Int32, 1, false});
    return builder.finish(
        builder.binary(kernels::ProgramOp::Le, builder.load(starts, query), builder.input(kernels::ProgramOp::Key)));
}

} // namespace

std::vector<std::int32_t> documentStarts(const std::vector<std::int32_t>& lengths) {
    std::vector<std::int32_t> starts;
    for (const std::int32_t length : lengths) {
        starts.insert(starts.end(), static_cast<std::size_t>(length), static_cast<std::int32_t>(starts.size()));
    }
    return starts;
}

kernels::BlockMask documentBlocks(const std::vector<std::int32_t>& lengths, std::int64_t window) {
    std::vector<std::int64_t> starts;
    std::int64_t tokens = 0;
    for (const std::int32_t length : lengths) {
        starts.push_back(tokens);
        tokens += length;
    }
    return kernels::causalBlockMask(tokens, [&](std::int64_t query) {
        const std::int64_t start = *(std::ranges::upper_bound(starts, query) - 1);
        return window > 0 ? std::max(start, query - window + 1) : start;
    });
}

void DocumentMasks::begin(const std::vector<std::int32_t>& lengths) {
    if (lengths == lengths_) {
        return;
    }
    lengths_ = lengths;
    for (auto& [window, mask] : masks_) {
        mask.blocks.reset();
    }
}

BackwardAttention DocumentMasks::of(const DecoderLayer& layer, const kernels::TensorView& starts) {
    const std::int64_t window = layer.config.window;
    Mask& mask = masks_[window];
    BackwardAttention out{layer.attentionMask, nullptr};
    if (!starts.empty()) {
        if (mask.program == nullptr) {
            mask.program = std::make_unique<kernels::KnownProgram>(
                kernels::andMasks(kernels::slidingWindowMask(window), sameDocumentMask()));
        }
        out.mask = mask.program->bound({{starts}});
    }
    if (mask.blocks == nullptr) {
        mask.blocks = std::make_unique<kernels::BlockMask>(documentBlocks(lengths_, window));
    }
    out.blocks = mask.blocks.get();
    return out;
}

} // namespace vitrine::engine
