// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/block_counts.h"

#include "base/error.h"
#include "engine/attention/device_blocks.h"
#include "kernels/context/context_options.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/memory/memory.h"
#include "kernels/program/emitter.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/attention/block_counts_testing.h"

namespace vitrine::kernels {
namespace {

using testing::Captures;

/// A context of its own with captures in its memory.
class Device {
public:
    Device() : context_(options()) {}

    Context& context() { return context_; }
    BoundProgram bind(const Program& mask, const CaptureBinding& host) {
        BoundProgram bound;
        bound.program = &mask;
        tensors_.clear();
        for (const TensorView& view : host.tensors) {
            tensors_.emplace_back(context_.memory().general(), base::MemoryCategory::BlockMask, "captured", view.dtype,
                                  view.shape);
            bound.captures.tensors.push_back(tensors_.back().view());
            context_.upload(view.data, bound.captures.tensors.back().data, view.bytes());
        }
        return bound;
    }

private:
    static ContextOptions options() {
        ContextOptions made;
        made.backend = Backend::Cuda;
        return made;
    }
    Context context_;
    std::vector<Tensor> tensors_;
};

/// Looks on the device however few the blocks are.
class Always final : public BlockEvaluator {
public:
    explicit Always(std::unique_ptr<BlockEvaluator> inner) : inner_(std::move(inner)) {}
    void count(std::span<const BlockPlace> places, bool exact, std::span<std::int32_t> counts) override {
        inner_->count(places, exact, counts);
    }
    std::int64_t worthElements() const override { return 1; }

private:
    std::unique_ptr<BlockEvaluator> inner_;
};

void expectCpusMask(Device& device, const Program& mask, const CaptureBinding& binding, const BlockMaskShape& shape) {
    base::ThreadPool pool(2);
    const BlockMask expected = buildBlockMask(mask, binding, shape, pool);
    auto inner = engine::deviceBlocks(device.context(), device.bind(mask, binding), expected.shape);
    ASSERT_NE(inner, nullptr);
    Always evaluator(std::move(inner));
    testing::expectSameMask(buildBlockMask(mask, binding, shape, pool, nullptr, {}, &evaluator), expected);
    EXPECT_EQ(elementDensity(expected, mask, binding, pool, {}, &evaluator),
              elementDensity(expected, mask, binding, pool));
}

TEST(BlockCountsGpu, RandomProgramsGiveTheCpusMasks) {
    VITRINE_NEEDS_GPU();
    Device device;
    std::mt19937 random(11);
    int compared = 0;
    for (int i = 0; compared < 12 && i < 100; ++i) {
        const BlockMaskShape shape = testing::randomShape(random);
        testing::RandomProgram source(random, 120, 3);
        const Program mask = source.mask();
        if (!isExactOnDevice(mask) || mask.nodes.size() < 8) {
            continue;
        }
        ++compared;
        const Captures captures = source.captures(mask);
        expectCpusMask(device, mask, captures.binding, shape);
    }
    EXPECT_EQ(compared, 12);
}

TEST(BlockCountsGpu, LargeMasksWithManyUndecidedBlocks) {
    VITRINE_NEEDS_GPU();
    Device device;
    testing::Maker dilated;
    const auto distance = dilated.q - dilated.k;
    expectCpusMask(device, dilated.finish((dilated.q >= dilated.k) & (distance % 3 == 0) & (distance <= 3000)), {},
                   {1, 1, 4001, 5003, 128, 100});
    testing::Maker table;
    const auto at = [&](const testing::Expr& i) { return table.load("ids", ProgramType::Int32, {i}); };
    const Program mask = table.finish(at(table.q) + at(table.k) <= 120);
    std::mt19937 random(3);
    Captures captures;
    std::vector<std::int32_t> ids(3000);
    for (std::int32_t& id : ids) {
        id = static_cast<std::int32_t>(random() % 100);
    }
    captures.add(ids, Shape{3000});
    expectCpusMask(device, mask, captures.binding, {1, 1, 3000, 3000, 16, 512});
    expectCpusMask(device, mask, captures.binding, {1, 1, 2999, 1, 4096, 4096});
}

TEST(BlockCountsGpu, OtherContentsRunTheSameKernel) {
    VITRINE_NEEDS_GPU();
    Device device;
    testing::Maker maker;
    const auto at = [&](const testing::Expr& i) { return maker.load("ids", ProgramType::Int32, {i}); };
    const Program mask = maker.finish((at(maker.q) ^ at(maker.k)) <= 5);
    std::size_t kernels = 0;
    for (const std::int32_t step : {3, 5, 7}) {
        std::vector<std::int32_t> ids(1000);
        for (std::int32_t i = 0; i < 1000; ++i) {
            ids[static_cast<std::size_t>(i)] = i * step % 64;
        }
        Captures captures;
        captures.add(ids, Shape{1000});
        expectCpusMask(device, mask, captures.binding, {1, 1, 1000, 1000, 64, 64});
        const std::size_t now = device.context().cuda()->library().uses().size();
        EXPECT_TRUE(kernels == 0 || kernels == now);
        kernels = now;
    }
}

TEST(BlockCountsGpu, RefusesProgramsThatAGpuRoundsOtherwise) {
    VITRINE_NEEDS_GPU();
    Device device;
    testing::Maker maker;
    const Program mask = maker.finish((maker.q / 3).of(ProgramOp::Sin) <= 0.5);
    EXPECT_EQ(engine::deviceBlocks(device.context(), device.bind(mask, {}), {1, 1, 64, 64, 16, 16}), nullptr);
}

} // namespace
} // namespace vitrine::kernels
