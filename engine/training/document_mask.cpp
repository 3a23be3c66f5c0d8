// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/document_mask.h"

#include <array>

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

kernels::BoundProgram DocumentMasks::of(const DecoderLayer& layer, const kernels::TensorView& starts) {
    if (starts.empty()) {
        return layer.attentionMask;
    }
    std::unique_ptr<kernels::KnownProgram>& program = programs_[layer.config.window];
    if (program == nullptr) {
        program = std::make_unique<kernels::KnownProgram>(
            kernels::andMasks(kernels::slidingWindowMask(layer.config.window), sameDocumentMask()));
    }
    return program->bound({{starts}});
}

} // namespace vitrine::engine
