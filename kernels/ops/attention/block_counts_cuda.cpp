// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/block_counts.h"

#include "kernels/device/abi/block_counts.h"
#include "kernels/ops/attention/flex_source.h"
#include "kernels/ops/attention/program_captures.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/program/emitter.h"

namespace vitrine::kernels {

void execute(CudaContext& context, const BlockCounts& op) {
    constexpr std::string_view kName = BlockCounts::kName;
    if (op.counts.shape.count() == 0) {
        return;
    }
    if (!isExactOnDevice(*op.mask.program)) {
        throw base::Unsupported(
            "BlockCounts: mask: it has float functions that a GPU rounds otherwise; choose the CPU");
    }
    const std::shared_ptr<const FlexSource> source = countingSource(op.mask);
    abi::BlockCountsParams parameters{};
    parameters.places = op.places.as<const int>();
    parameters.counts = op.counts.as<int>();
    parameters.queries = toInt(op.shape.queries, kName, "queries");
    parameters.keys = toInt(op.shape.keys, kName, "keys");
    parameters.queryBlock = toInt(std::min(op.shape.queryBlock, op.shape.queries), kName, "queryBlock");
    parameters.keyBlock = toInt(std::min(op.shape.keyBlock, op.shape.keys), kName, "keyBlock");
    parameters.exact = op.exact ? 1 : 0;
    parameters.captures = capturesOf(op.mask, kName);
    const KernelVariable variables[] = {{"count", op.counts.shape.count()}};
    KernelCall call = callOf("block_counts", abi::kBlockCountsAbi, parameters, variables);
    call.generated = &source->text;
    context.launch(call);
}

} // namespace vitrine::kernels
