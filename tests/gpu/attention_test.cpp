// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"

#include "kernels/cuda/jit/kernel_library.h"
#include "tests/gpu/attention_scene.h"

namespace vitrine::kernels {
namespace {

using testing::AttentionCase;
using testing::AttentionScene;
using testing::expectSame;
using testing::TestTensor;

std::vector<AttentionCase> singleRows() {
    std::vector<AttentionCase> cases;
    cases.push_back({.name = "groups of 8",
                     .past = {0, 16, 299, 1023, 2999},
                     .added = {1, 1, 1, 1, 1},
                     .heads = 64,
                     .kvHeads = 8,
                     .dim = 64});
    for (const std::int64_t dim : {64, 128}) { // long heads are cut into more parts than multiprocessors
        cases.push_back({.name = "long rows, head dim " + std::to_string(dim),
                         .past = {39'999, 17'471, 2999, 20'000},
                         .added = {1, 1, 1, 1},
                         .heads = 8,
                         .kvHeads = 8,
                         .dim = dim});
    }
    cases.push_back({.name = "a table wider than needed",
                     .past = {5, 700},
                     .added = {1, 1},
                     .heads = 16,
                     .kvHeads = 2,
                     .dim = 64,
                     .pageTokens = 128,
                     .extraPages = 60});
    cases.push_back({.name = "ring",
                     .past = {1, 100, 127, 128, 1000},
                     .added = {1, 1, 1, 1, 1},
                     .heads = 64,
                     .kvHeads = 8,
                     .dim = 64,
                     .pageTokens = 43,
                     .window = 128,
                     .ring = true});
    cases.push_back({.name = "window without ring",
                     .past = {4, 500, 900},
                     .added = {1, 1, 1},
                     .heads = 6,
                     .kvHeads = 2,
                     .dim = 96,
                     .pageTokens = 32,
                     .window = 300});
    cases.push_back({.name = "groups of 7, soft cap",
                     .past = {4, 600},
                     .added = {1, 1},
                     .heads = 28,
                     .kvHeads = 4,
                     .dim = 128,
                     .pageTokens = 16,
                     .sinks = false,
                     .softCap = 20});
    cases.push_back({.name = "groups of 20", .past = {4, 600}, .added = {1, 1}, .heads = 40, .kvHeads = 2, .dim = 80});
    cases.push_back({.name = "head dim 256", .past = {4, 600}, .added = {1, 1}, .heads = 8, .kvHeads = 4, .dim = 256});
    cases.push_back({.name = "no groups, half floats",
                     .past = {4, 600},
                     .added = {1, 1},
                     .heads = 3,
                     .kvHeads = 3,
                     .dim = 16,
                     .type = DType::F16,
                     .cacheType = DType::F16,
                     .outType = DType::F32});
    cases.push_back({.name = "as many rows as sequences, but not one each",
                     .past = {300, 5, 700, 64},
                     .added = {2, 0, 1, 1},
                     .heads = 8,
                     .kvHeads = 2,
                     .dim = 64});
    return cases;
}

void addHeadDims(std::vector<AttentionCase>& cases) {
    for (const std::int64_t dim : {64, 96, 128}) {
        cases.push_back({.name = "more pieces than multiprocessors, head dim " + std::to_string(dim),
                         .past = {700, 3},
                         .added = {900, 301},
                         .heads = 32,
                         .kvHeads = 8,
                         .dim = dim,
                         .pageTokens = 128});
        cases.push_back({.name = "a long step beside a ring, head dim " + std::to_string(dim),
                         .past = {130, 0, 64},
                         .added = {500, 700, 65},
                         .heads = 16,
                         .kvHeads = 8,
                         .dim = dim,
                         .window = 128,
                         .ring = true});
    }
    cases.push_back({.name = "groups of 7",
                     .past = {40, 0},
                     .added = {300, 33},
                     .heads = 14,
                     .kvHeads = 2,
                     .dim = 64,
                     .pageTokens = 16});
    cases.push_back({.name = "head dim 192",
                     .past = {10},
                     .added = {100},
                     .heads = 4,
                     .kvHeads = 2,
                     .dim = 192,
                     .outType = DType::F32});
    for (const std::int64_t dim : {112, 144, 176, 208}) {
        cases.push_back({.name = "head dim " + std::to_string(dim),
                         .past = {10},
                         .added = {100},
                         .heads = 4,
                         .kvHeads = 2,
                         .dim = dim,
                         .softCap = 40});
    }
    cases.push_back({.name = "head dim 16, half floats",
                     .past = {10},
                     .added = {100},
                     .heads = 4,
                     .kvHeads = 2,
                     .dim = 16,
                     .type = DType::F16,
                     .cacheType = DType::F16,
                     .outType = DType::F16});
}

std::vector<AttentionCase> manyRowsAndMixedBatches() {
    std::vector<AttentionCase> cases;
    cases.push_back({.name = "prefill", .past = {0, 23}, .added = {300, 77}, .heads = 16, .kvHeads = 2, .dim = 64});
    cases.push_back(
        {.name = "mixed", .past = {1000, 399, 128, 0}, .added = {130, 1, 2, 1}, .heads = 16, .kvHeads = 2, .dim = 64});
    cases.push_back({.name = "mixed ring",
                     .past = {1000, 399, 128, 0},
                     .added = {130, 1, 2, 1},
                     .heads = 16,
                     .kvHeads = 2,
                     .dim = 64,
                     .pageTokens = 43,
                     .window = 128,
                     .ring = true});
    cases.push_back({.name = "groups of 3, window",
                     .past = {87},
                     .added = {200},
                     .heads = 6,
                     .kvHeads = 2,
                     .dim = 128,
                     .pageTokens = 16,
                     .window = 50,
                     .sinks = false});
    cases.push_back({.name = "not causal",
                     .past = {87, 0},
                     .added = {60, 90},
                     .heads = 4,
                     .kvHeads = 2,
                     .dim = 64,
                     .causal = false,
                     .softCap = 30});
    cases.push_back({.name = "head dim 256",
                     .past = {10, 0},
                     .added = {100, 3},
                     .heads = 4,
                     .kvHeads = 2,
                     .dim = 256,
                     .window = 70,
                     .softCap = 50});
    addHeadDims(cases);
    return cases;
}

std::vector<AttentionCase> programsBeyondCausal() {
    std::vector<AttentionCase> cases;
    for (const std::string_view program : testing::AttentionPrograms::kNames) {
        const std::string name(program);
        cases.push_back({.name = name + ", single rows",
                         .past = {0, 63, 299, 900},
                         .added = {1, 1, 1, 1},
                         .heads = 16,
                         .kvHeads = 2,
                         .dim = 64,
                         .program = std::string(program)});
        cases.push_back({.name = name + ", mixed",
                         .past = {300, 99, 0, 128, 700},
                         .added = {130, 1, 200, 2, 60},
                         .heads = 12,
                         .kvHeads = 4,
                         .dim = 128,
                         .pageTokens = 32,
                         .sinks = false,
                         .program = std::string(program)});
        cases.push_back({.name = name + ", head dim 96",
                         .past = {33, 0},
                         .added = {100, 77},
                         .heads = 4,
                         .kvHeads = 2,
                         .dim = 96,
                         .pageTokens = 24,
                         .program = std::string(program)});
        cases.push_back({.name = name + ", float32",
                         .past = {40, 0},
                         .added = {20, 33},
                         .heads = 4,
                         .kvHeads = 2,
                         .dim = 64,
                         .type = DType::F32,
                         .cacheType = DType::F32,
                         .outType = DType::F32,
                         .program = std::string(program)});
    }
    return cases;
}

std::vector<AttentionCase> sparseMasksOverLongContexts() {
    std::vector<AttentionCase> cases;
    std::mt19937 random(std::random_device{}());
    const auto any = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
    for (const std::string_view program : testing::AttentionPrograms::kSparse) {
        const std::string name(program);
        const AttentionCase single{.name = name + ", single rows",
                                   .past = {any(4000, 9000), any(0, 700), 64, any(1000, 3000)},
                                   .added = {1, 1, 1, 1},
                                   .heads = 16,
                                   .kvHeads = 2,
                                   .dim = 64,
                                   .pageTokens = any(1, 130),
                                   .program = std::string(program)};
        const AttentionCase mixed{.name = name + ", mixed",
                                  .past = {any(1000, 3000), any(600, 1500), 0, any(0, 300)},
                                  .added = {any(2, 150), 1, any(2, 400), 2},
                                  .heads = 12,
                                  .kvHeads = 4,
                                  .dim = 128,
                                  .pageTokens = 8 * any(1, 16),
                                  .sinks = false,
                                  .program = std::string(program)};
        const AttentionCase portable{.name = name + ", head dim 96",
                                     .past = {any(600, 2000), 0},
                                     .added = {any(2, 100), any(2, 600)},
                                     .heads = 4,
                                     .kvHeads = 2,
                                     .dim = 96,
                                     .pageTokens = 24,
                                     .program = std::string(program)};
        const AttentionCase plain{.name = name + ", float32",
                                  .past = {any(600, 1500), 0},
                                  .added = {any(1, 20), any(1, 33)},
                                  .heads = 4,
                                  .kvHeads = 2,
                                  .dim = 64,
                                  .type = DType::F32,
                                  .cacheType = DType::F32,
                                  .outType = DType::F32,
                                  .program = std::string(program)};
        for (const AttentionCase& item : {single, mixed, portable, plain}) {
            cases.push_back(item);
        }
    }
    return cases;
}

std::vector<AttentionCase> randomMasks() {
    std::vector<AttentionCase> cases;
    std::mt19937 random(std::random_device{}());
    for (int i = 0; i < 16; ++i) {
        const std::string program = testing::AttentionPrograms::random(random);
        const auto past = static_cast<std::int64_t>(random() % 3000);
        cases.push_back({.name = "mask " + std::to_string(i),
                         .past = {past, 600, 30},
                         .added = {1 + static_cast<std::int64_t>(random() % 200), 1, 40},
                         .heads = 4,
                         .kvHeads = 2,
                         .dim = 64,
                         .program = std::string(program)});
    }
    return cases;
}

std::vector<AttentionCase> withoutTensorCores() {
    std::vector<AttentionCase> cases;
    cases.push_back({.name = "float32",
                     .past = {299, 0, 88},
                     .added = {1, 40, 2},
                     .heads = 6,
                     .kvHeads = 2,
                     .dim = 64,
                     .type = DType::F32,
                     .cacheType = DType::F32,
                     .outType = DType::F32});
    cases.push_back({.name = "float32 over a bf16 ring",
                     .past = {299, 100, 88},
                     .added = {1, 40, 2},
                     .heads = 6,
                     .kvHeads = 2,
                     .dim = 20,
                     .pageTokens = 16,
                     .window = 33,
                     .ring = true,
                     .softCap = 10,
                     .type = DType::F32,
                     .outType = DType::F32});
    cases.push_back({.name = "odd head dim", .past = {3}, .added = {4}, .heads = 6, .kvHeads = 2, .dim = 30});
    cases.push_back(
        {.name = "unaligned rows", .past = {3}, .added = {4}, .heads = 6, .kvHeads = 2, .dim = 32, .qExtra = 3});
    return cases;
}

class AttentionGpu : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    expectSame(GetParam());
}

INSTANTIATE_TEST_SUITE_P(SingleRows, AttentionGpu, ::testing::ValuesIn(singleRows()), testing::testName);
INSTANTIATE_TEST_SUITE_P(ManyRowsAndMixedBatches, AttentionGpu, ::testing::ValuesIn(manyRowsAndMixedBatches()),
                         testing::testName);
INSTANTIATE_TEST_SUITE_P(ProgramsBeyondCausal, AttentionGpu, ::testing::ValuesIn(programsBeyondCausal()),
                         testing::testName);
INSTANTIATE_TEST_SUITE_P(SparseMasksOverLongContexts, AttentionGpu, ::testing::ValuesIn(sparseMasksOverLongContexts()),
                         testing::testName);
INSTANTIATE_TEST_SUITE_P(RandomMasks, AttentionGpu, ::testing::ValuesIn(randomMasks()), testing::testName);
INSTANTIATE_TEST_SUITE_P(WithoutTensorCores, AttentionGpu, ::testing::ValuesIn(withoutTensorCores()),
                         testing::testName);

TEST(AttentionGpuKernels, NewContentsCompileNothing) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    const auto runWith = [&](std::int64_t sequences) {
        const AttentionCase item{.name = "contents",
                                 .past = std::vector<std::int64_t>(static_cast<std::size_t>(sequences), 200),
                                 .added = std::vector<std::int64_t>(static_cast<std::size_t>(sequences), 40),
                                 .heads = 4,
                                 .kvHeads = 2,
                                 .dim = 64,
                                 .program = "document"};
        expectSame(item);
    };
    runWith(2);
    const std::size_t before = context.library().uses().size();
    runWith(3); // other documents, other lengths
    EXPECT_EQ(context.library().uses().size(), before);
}

/// What one sequence's rows give does not depend on what else is in the batch.
TEST(AttentionGpuRows, RowsDoNotDependOnTheBatch) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    const AttentionCase item{
        .name = "batch", .past = {100, 1023, 40}, .added = {1, 1, 60}, .heads = 16, .kvHeads = 2, .dim = 64};
    AttentionScene scene(item);
    const auto run = [&](bool alone) {
        testing::OnDevice device(context);
        Attention op = scene(device);
        if (alone) {
            op.q = sliceRows(op.q, 1, 2);
            op.positions = sliceRows(op.positions, 1, 2);
            op.cache.blockTable = sliceRows(op.cache.blockTable, 1, 2);
            op.cache.first = sliceRows(op.cache.first, 1, 2);
            op.cache.lengths = sliceRows(op.cache.lengths, 1, 2);
            op.offsets = sliceRows(op.offsets, 0, 2);
            op.out = sliceRows(op.out, 1, 2);
            op.lse = {};
        }
        device.run(op);
        device.download(scene.out);
        const std::vector<double> all = scene.out.values();
        return std::vector<double>(all.begin() + 16 * 64, all.begin() + 2 * 16 * 64);
    };
    EXPECT_EQ(run(false), run(true));
}

TEST(AttentionGpuRows, RowsThatSeeNothingGiveZero) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    for (const std::int64_t added : {1, 3}) {
        const AttentionCase item{
            .name = "nothing", .past = {0}, .added = {added}, .heads = 4, .kvHeads = 2, .dim = 64, .sinks = false};
        AttentionScene scene(item);
        scene.lengths.fillInts({0});
        testing::OnDevice device(context);
        Attention op = scene(device);
        device.run(op);
        device.download(scene.out);
        device.download(scene.lse);
        for (const double value : scene.out.values()) {
            EXPECT_EQ(value, 0);
        }
        for (const double value : scene.lse.values()) {
            EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
        }
    }
}

TEST(AttentionGpuKernels, ScratchFollowsFromShapesAndTraits) {
    const AttentionCase item{
        .name = "scratch", .past = {1023, 5}, .added = {1, 1}, .heads = 64, .kvHeads = 8, .dim = 64};
    const AttentionScene scene(item);
    const Attention op = scene([](const TestTensor& tensor) { return tensor.view(); });
    const DeviceTraits gpu = loadDeviceProfile("h200");
    EXPECT_GT(scratch(op, gpu), 0U);
    EXPECT_EQ(scratch(op, cpuTraits(2)), 0U);
}

} // namespace
} // namespace vitrine::kernels
