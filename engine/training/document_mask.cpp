// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/document_mask.h"

#include <array>

#include "base/thread_pool.h"
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
    std::vector<std::int32_t> starts = documentStarts(lengths);
    const auto tokens = static_cast<std::int64_t>(starts.size());
    kernels::CaptureBinding binding;
    binding.tensors = {{starts.data(), kernels::DType::I32, {tokens}, {}}};
    base::ThreadPool pool(1);
    return kernels::buildBlockMask(kernels::andMasks(kernels::slidingWindowMask(window), sameDocumentMask()), binding,
                                   {1, 1, tokens, tokens}, pool);
}

void DocumentMasks::begin(const std::vector<std::int32_t>& lengths) {
    if (lengths == lengths_) {
        return;
    }
    lengths_ = lengths;
    starts_ = documentStarts(lengths);
    for (auto& [window, mask] : masks_) {
        mask.blocks.reset();
    }
}

BackwardAttention DocumentMasks::of(const DecoderLayer& layer, const kernels::TensorView& starts) {
    Mask& mask = masks_[layer.config.window];
    BackwardAttention out{layer.attentionMask, nullptr};
    kernels::CaptureBinding onHost;
    if (!starts.empty()) {
        if (mask.program == nullptr) {
            mask.program = std::make_unique<kernels::KnownProgram>(
                kernels::andMasks(kernels::slidingWindowMask(layer.config.window), sameDocumentMask()));
        }
        out.mask = mask.program->bound({{starts}});
        onHost.tensors = {{starts_.data(), starts.dtype, starts.shape, {}}};
    }
    if (mask.blocks == nullptr) {
        const auto tokens = static_cast<std::int64_t>(starts_.size());
        base::ThreadPool pool(1);
        mask.blocks = std::make_unique<kernels::BlockMask>(
            kernels::buildBlockMask(*out.mask.program, onHost, {1, 1, tokens, tokens}, pool));
    }
    out.blocks = mask.blocks.get();
    return out;
}

} // namespace vitrine::engine
