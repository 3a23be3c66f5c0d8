// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/sample.h"

#include <algorithm>

#include "kernels/device/abi/sample.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/sampling/sample_scratch.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kMostTopLogprobs = 1024; ///< what sample_filtered.cuh sorts

abi::SampleParams parametersOf(const Sample& op) {
    abi::SampleParams out{};
    out.logits = op.logits.data;
    out.ids = op.ids.as<int>();
    out.logprobs = op.logprobs.as<float>();
    out.topIds = op.topIds.as<int>();
    out.topLogprobValues = op.topLogprobValues.as<float>();
    out.scratch = op.scratch.data;
    out.stride = op.logits.stride0();
    out.rows = toInt(op.logits.shape[0], Sample::kName, "logits");
    out.vocab = toInt(op.logits.shape[1], Sample::kName, "logits");
    out.topLogprobs = op.topLogprobs;
    out.drawLogprobs = op.drawLogprobs.as<float>();
    return out;
}

void runGreedy(CudaContext& context, const Sample& op) {
    const abi::SampleParams whole = parametersOf(op);
    const std::int64_t rowBytes = whole.stride * bitsOf(op.logits.dtype) / 8;
    for (std::int64_t begin = 0; begin < whole.rows; begin += kGreedyRows) {
        abi::SampleParams part = whole;
        part.rows = static_cast<int>(std::min(kGreedyRows, whole.rows - begin));
        part.logits = static_cast<const std::byte*>(whole.logits) + begin * rowBytes;
        part.ids = whole.ids + begin;
        part.logprobs = whole.logprobs == nullptr ? nullptr : whole.logprobs + begin;
        part.drawLogprobs = whole.drawLogprobs == nullptr ? nullptr : whole.drawLogprobs + kDrawLogprobs * begin;
        launchFamily(context, "sample_greedy", abi::kSampleAbi, part,
                     {{"x_dtype", dtypeNumber(op.logits)},
                      {"vector", pieceOf(whole.vocab, {&op.logits})},
                      {"vocab", whole.vocab},
                      {"rows", part.rows}});
    }
}

} // namespace

void execute(CudaContext& context, const Sample& op) {
    if (op.logits.shape[0] == 0) {
        return;
    }
    if (op.topLogprobs == 0 && plainlyGreedy(op.parameters)) {
        runGreedy(context, op);
        return;
    }
    if (op.packed.empty()) {
        throw base::Internal("Sample: packed: the GPU needs the parameters of rows that are not plainly greedy");
    }
    if (op.topLogprobs > kMostTopLogprobs) {
        throw base::Unsupported("Sample: topLogprobs: the GPU reports at most 1024 of the best");
    }
    abi::SampleParams parameters = parametersOf(op);
    parameters.parameters = op.packed.as<const abi::SampleRow>();
    // The scratch holds two pieces of min(kSampleSlots, rows) rows of the vocabulary.
    parameters.slots = static_cast<int>(std::min<std::int64_t>(parameters.rows, 2 * kSampleSlots));
    launchFamily(context, "sample_filtered", abi::kSampleAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)},
                  {"vocab", parameters.vocab},
                  {"slots", parameters.slots},
                  {"draw_logprobs", op.drawLogprobs.empty() ? 0 : 1}});
}

} // namespace vitrine::kernels
