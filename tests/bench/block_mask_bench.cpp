// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Block masks of a million tokens: causal and document, documents of 1,000 to 20,000 tokens. Argument: threads.

#include "kernels/program/block_mask.h"

#include <benchmark/benchmark.h>
#include <random>

#include "kernels/program/program_builder.h"

namespace {

using namespace vitrine;
using namespace vitrine::kernels;

constexpr std::int64_t kLength = std::int64_t{1} << 20;

struct Documents {
    Documents() {
        std::mt19937 random(7);
        for (std::int32_t document = 0; static_cast<std::int64_t>(ids.size()) < kLength; ++document) {
            const std::int64_t left = kLength - static_cast<std::int64_t>(ids.size());
            ids.insert(ids.end(), static_cast<std::size_t>(std::min<std::int64_t>(left, 1000 + random() % 19000)),
                       document);
        }
        ProgramBuilder builder;
        const auto query = builder.input(ProgramOp::Query);
        const auto key = builder.input(ProgramOp::Key);
        const std::int32_t capture = builder.capture({"document_id", ProgramType::Int32, 1, false});
        const auto same = builder.binary(ProgramOp::Eq, builder.load(capture, std::array{query}),
                                         builder.load(capture, std::array{key}));
        mask = builder.finish(builder.binary(ProgramOp::And, builder.binary(ProgramOp::Le, key, query), same));
        binding.tensors = {TensorView{ids.data(), DType::I32, Shape{kLength}, 0}};
    }
    std::vector<std::int32_t> ids;
    Program mask;
    CaptureBinding binding;
};

void buildMillion(benchmark::State& state) {
    Documents documents;
    base::ThreadPool pool(static_cast<int>(state.range(0)));
    std::uint64_t bytes = 0;
    for (auto _ : state) {
        const BlockMask mask =
            buildBlockMask(documents.mask, documents.binding, {1, 1, kLength, kLength, 128, 128}, pool);
        bytes = mask.metadataBytes();
    }
    state.counters["metadata"] = static_cast<double>(bytes);
}
BENCHMARK(buildMillion)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void densityOfMillion(benchmark::State& state) {
    Documents documents;
    base::ThreadPool pool(static_cast<int>(state.range(0)));
    const BlockMask mask = buildBlockMask(documents.mask, documents.binding, {1, 1, kLength, kLength, 128, 128}, pool);
    for (auto _ : state) {
        benchmark::DoNotOptimize(elementDensity(mask, documents.mask, documents.binding, pool));
    }
}
BENCHMARK(densityOfMillion)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
