// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"
#include "tests/gpu/attention_scene.h"

namespace vitrine::kernels {
namespace {

using testing::AttentionCase;
using testing::AttentionScene;
using testing::expectSame;
using testing::TestTensor;

std::vector<AttentionCase> singleRowsOfBytes() {
    std::vector<AttentionCase> cases;
    for (const DType type : {DType::I8, DType::F8E4M3}) {
        for (const std::int64_t dim : {32, 64, 96, 128, 256}) {
            cases.push_back({.name = "head dim " + std::to_string(dim),
                             .past = {0, 16, 299, 1023, 2999},
                             .added = {1, 1, 1, 1, 1},
                             .heads = 24,
                             .kvHeads = 2,
                             .dim = dim,
                             .pageTokens = dim == 64 ? 64 : 48,
                             .cacheType = type});
        }
        // Cut into more parts than multiprocessors: a block takes two of them, or, of one row alone, one.
        for (const std::vector<std::int64_t>& past : {std::vector<std::int64_t>{30'000, 18'000, 299}, {20'000}}) {
            cases.push_back({.name = std::to_string(past.size()) + " long rows",
                             .past = past,
                             .added = std::vector<std::int64_t>(past.size(), 1),
                             .heads = 8,
                             .kvHeads = 8,
                             .dim = 64,
                             .cacheType = type});
        }
    }
    return cases;
}

std::vector<AttentionCase> manyRows() {
    std::vector<AttentionCase> cases;
    for (const DType type : {DType::I8, DType::F8E4M3}) {
        for (const std::int64_t dim : {32, 64, 96, 128, 256}) {
            cases.push_back({.name = "mixed, head dim " + std::to_string(dim),
                             .past = {1000, 399, 128, 0},
                             .added = {130, 1, 2, 1},
                             .heads = 16,
                             .kvHeads = 2,
                             .dim = dim,
                             .cacheType = type,
                             .beside = dim != 96});
        }
        cases.push_back({.name = "a mask without closed form",
                         .past = {300, 99, 0, 128, 700},
                         .added = {130, 1, 200, 2, 60},
                         .heads = 12,
                         .kvHeads = 4,
                         .dim = 128,
                         .pageTokens = 32,
                         .sinks = false,
                         .cacheType = type,
                         .program = "document"});
    }
    return cases;
}

std::vector<AttentionCase> piecesAfterPages() {
    std::vector<AttentionCase> cases;
    for (const DType type : {DType::I8, DType::F8E4M3}) {
        std::mt19937 random(std::random_device{}());
        const auto any = [&](int low, int high) {
            return std::uniform_int_distribution<std::int64_t>(low, high)(random);
        };
        for (const std::int64_t dim : {64, 96, 128}) {
            for (const bool beside : {true, false}) {
                const AttentionCase item{.name = fmt::format("head dim {}{}", dim, beside ? " beside" : ""),
                                         .past = {any(300, 1500), 128, any(0, 700), any(1, 60)},
                                         .added = {any(2, 300), 256, any(60, 200), 1},
                                         .heads = 16,
                                         .kvHeads = 2,
                                         .dim = dim,
                                         .pageTokens = beside ? 32 * any(1, 4) : any(3, 130),
                                         .window = beside ? 0 : any(100, 400),
                                         .sinks = beside,
                                         .softCap = dim == 96 ? 20.0F : 0.0F,
                                         .cacheType = type,
                                         .outType = beside ? DType::BF16 : DType::F32,
                                         .beside = beside};
                cases.push_back(item);
            }
        }
        for (const std::string_view program : testing::AttentionPrograms::kSparse) {
            cases.push_back({.name = std::string(program),
                             .past = {any(1000, 3000), any(600, 1500), 0, any(0, 300)},
                             .added = {any(2, 150), 1, any(2, 400), 2},
                             .heads = 12,
                             .kvHeads = 4,
                             .dim = any(0, 1) == 0 ? 64 : 128,
                             .pageTokens = 8 * any(1, 16),
                             .sinks = false,
                             .cacheType = type,
                             .program = std::string(program),
                             .beside = true});
        }
    }
    return cases;
}

std::vector<AttentionCase> rings() {
    std::vector<AttentionCase> cases;
    for (const DType type : {DType::I8, DType::F8E4M3}) {
        for (const std::int64_t window : {33, 128}) {
            cases.push_back({.name = fmt::format("single rows, window {}", window),
                             .past = {1, 100, 127, 128, 1000},
                             .added = {1, 1, 1, 1, 1},
                             .heads = 64,
                             .kvHeads = 8,
                             .dim = 64,
                             .pageTokens = window == 33 ? 11 : 64,
                             .window = window,
                             .ring = true,
                             .cacheType = type});
            cases.push_back({.name = fmt::format("mixed, window {}", window),
                             .past = {1000, 399, 128, 0, 3},
                             .added = {130, 1, 2, 1, 300},
                             .heads = 16,
                             .kvHeads = 2,
                             .dim = 64,
                             .pageTokens = 43,
                             .window = window,
                             .ring = true,
                             .cacheType = type});
        }
        for (const std::int64_t dim : {64, 96, 128}) {
            cases.push_back({.name = "a long step, head dim " + std::to_string(dim),
                             .past = {130, 0, 64, 900},
                             .added = {500, 700, 65, 3},
                             .heads = 16,
                             .kvHeads = 8,
                             .dim = dim,
                             .pageTokens = dim == 96 ? 40 : 64,
                             .window = 128,
                             .ring = true,
                             .cacheType = type});
        }
    }
    return cases;
}

std::vector<AttentionCase> bytesWithoutTensorCores() {
    std::vector<AttentionCase> cases;
    for (const DType type : {DType::I8, DType::F8E4M3}) {
        for (const bool ring : {false, true}) {
            cases.push_back({.name = ring ? "ring" : "pages",
                             .past = {299, 100, 88},
                             .added = {1, 40, 2},
                             .heads = 6,
                             .kvHeads = 2,
                             .dim = ring ? 20 : 64,
                             .pageTokens = 16,
                             .window = 33,
                             .ring = ring,
                             .softCap = 10,
                             .type = DType::F32,
                             .cacheType = type,
                             .outType = DType::F32});
        }
    }
    return cases;
}

class AttentionOfBytesGpu : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionOfBytesGpu, AsOnTheCpu) {
    VITRINE_NEEDS_GPU();
    expectSame(GetParam());
}

INSTANTIATE_TEST_SUITE_P(SingleRows, AttentionOfBytesGpu, ::testing::ValuesIn(singleRowsOfBytes()), testing::testName);
INSTANTIATE_TEST_SUITE_P(ManyRows, AttentionOfBytesGpu, ::testing::ValuesIn(manyRows()), testing::testName);
INSTANTIATE_TEST_SUITE_P(PiecesAfterPages, AttentionOfBytesGpu, ::testing::ValuesIn(piecesAfterPages()),
                         testing::testName);
INSTANTIATE_TEST_SUITE_P(Rings, AttentionOfBytesGpu, ::testing::ValuesIn(rings()), testing::testName);
INSTANTIATE_TEST_SUITE_P(WithoutTensorCores, AttentionOfBytesGpu, ::testing::ValuesIn(bytesWithoutTensorCores()),
                         testing::testName);

class PiecesOfBytesGpu : public ::testing::TestWithParam<DType> {};

/// A key is the same number where a step reads its own tokens as where a later one reads the cache.
TEST_P(PiecesOfBytesGpu, OfAPromptGiveTheSameBits) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    for (const std::int64_t dim : {32, 64, 96, 128}) {
        const AttentionCase item{.name = "pieces",
                                 .past = {0},
                                 .added = {700},
                                 .heads = 16,
                                 .kvHeads = 2,
                                 .dim = dim,
                                 .cacheType = GetParam(),
                                 .beside = true};
        AttentionScene scene(item);
        const auto rowsFrom = [&](std::int64_t begin) {
            TestTensor offsets(DType::I32, Shape{2});
            offsets.fillInts({0, static_cast<std::int32_t>(700 - begin)});
            testing::OnDevice device(context);
            Attention op = scene(device);
            op.offsets = device(offsets);
            for (TensorView* rows : {&op.q, &op.positions, &op.newK, &op.newV, &op.out}) {
                *rows = sliceRows(*rows, begin, 700);
            }
            op.lse = {};
            device.run(op);
            device.download(scene.out);
            return scene.out.values();
        };
        const std::vector<double> whole = rowsFrom(0);
        for (const std::int64_t begin : {64, 390, 640}) {
            const std::vector<double> piece = rowsFrom(begin);
            EXPECT_TRUE(std::equal(piece.begin() + begin * 16 * dim, piece.end(), whole.begin() + begin * 16 * dim))
                << "head dim " << dim << ", from row " << begin;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Every, PiecesOfBytesGpu, ::testing::Values(DType::I8, DType::F8E4M3),
                         [](const auto& item) { return std::string(dtypeName(item.param)); });

} // namespace
} // namespace vitrine::kernels
