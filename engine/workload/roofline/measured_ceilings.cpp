// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/roofline/measured_ceilings.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "engine/workload/common/run_setup.h"
#include "kernels/cpu/read_bandwidth.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/linear/weights.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

constexpr int kWarmUps = 2;
constexpr int kCeilingTimes = 9;
constexpr std::uint64_t kCopyBytes = std::uint64_t{2} << 30;
constexpr std::uint64_t kLeastCopyBytes = std::uint64_t{16} << 20;

double medianSeconds(kernels::Context& context, const std::function<void()>& work) {
    std::vector<double> times = secondsOfRuns(context, kWarmUps + kCeilingTimes, [&](std::int64_t) {
        context.throwIfStopped();
        work();
    });
    times.erase(times.begin(), times.begin() + kWarmUps);
    return median(std::move(times));
}

Tensor randomTensor(kernels::Context& context, kernels::Arena& arena, DType dtype, const Shape& shape,
                    std::uint64_t seed, std::uint32_t stream) {
    Tensor tensor(arena, base::MemoryCategory::Workspace, "bench", dtype, shape);
    fillRandom(context, tensor.view(), seed, stream);
    return tensor;
}

} // namespace

void fillRandom(kernels::Context& context, const kernels::TensorView& out, std::uint64_t seed, std::uint32_t stream) {
    kernels::FillRandom fill;
    fill.out = out;
    fill.seed = seed;
    fill.stream = stream;
    context.run(fill);
}

Ceiling measureCopy(kernels::Context& context, std::uint64_t seed) {
    if (context.can().virtualTime) {
        return {context.traits().memoryBandwidth, "device profile"};
    }
    if (context.can().runsOnHost) {
        return {kernels::measureReadBandwidth(context), "all threads read 1 GiB"};
    }
    const std::uint64_t room = context.memory().general().largestFree() / 4;
    const std::uint64_t bytes = std::clamp(room, kLeastCopyBytes, kCopyBytes) / kLeastCopyBytes * kLeastCopyBytes;
    // An arena goes back to the device at once; the caching allocator would keep its segments.
    const std::unique_ptr<kernels::Arena> arena = context.memory().reserveArena(2 * bytes, "bench.copy");
    const Shape shape{static_cast<std::int64_t>(bytes)};
    const Tensor from = randomTensor(context, *arena, DType::U8, shape, seed, 0);
    const Tensor to = randomTensor(context, *arena, DType::U8, shape, seed, 1);
    const double seconds =
        medianSeconds(context, [&] { context.copy(from.view().data, to.view().data, from.view().bytes()); });
    return {2 * static_cast<double>(bytes) / seconds, "copy on the device, bytes read and written"};
}

Ceiling measureMatmul(kernels::Context& context, std::uint64_t seed) {
    const bool gpu = context.can().runsAhead;
    const std::int64_t size = gpu ? 8192 : 1024;
    const DType dtype = gpu ? DType::BF16 : DType::F32;
    if (context.can().virtualTime) {
        return {context.traits().flops(DType::BF16), "device profile"};
    }
    const std::uint64_t bytes = kernels::bytesOf(dtype, size * size);
    kernels::Matmul op;
    const Shape shape{size, size};
    const std::unique_ptr<kernels::Arena> arena = context.memory().reserveArena(3 * bytes, "bench.matmul");
    const Tensor x = randomTensor(context, *arena, dtype, shape, seed, 0);
    const Tensor weight = randomTensor(context, *arena, dtype, shape, seed, 1);
    const Tensor out(*arena, base::MemoryCategory::Workspace, "bench", dtype, shape);
    op.x = x.view();
    op.weight = kernels::denseWeight(weight.view());
    op.out = out.view();
    Tensor scratch;
    if (const std::uint64_t needed = kernels::scratch(op, context.traits()); needed > 0) {
        scratch = Tensor(context.memory().general(), base::MemoryCategory::Workspace, "bench.scratch", DType::U8,
                         Shape{static_cast<std::int64_t>(needed)});
        op.scratch = scratch.view();
    }
    const double seconds = medianSeconds(context, [&] { context.run(op); });
    return {2 * static_cast<double>(size * size * size) / seconds,
            gpu ? "BF16 8192 x 8192 x 8192" : "float32 1024 x 1024 x 1024"};
}

} // namespace vitrine::engine
