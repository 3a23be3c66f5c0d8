// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/block_mask.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/program/emitter.h"
#include "kernels/program/interpreter.h"
#include "tests/kernels/program/program_testing.h"
#include "tests/repetitions.h"

namespace vitrine::kernels {
namespace {

using testing::Captures;
using testing::Maker;

/// Every element of a mask.
class Dense {
public:
    Dense(const Program& mask, const CaptureBinding& binding, const BlockMaskShape& shape) : shape_(shape) {
        Interpreter<float> interpreter(mask, binding);
        for (std::int64_t b = 0; b < shape.batch; ++b) {
            for (std::int64_t h = 0; h < shape.heads; ++h) {
                for (std::int64_t q = 0; q < shape.queries; ++q) {
                    for (std::int64_t k = 0; k < shape.keys; k += kInterpreterWidth) {
                        const int count = static_cast<int>(std::min<std::int64_t>(kInterpreterWidth, shape.keys - k));
                        interpreter.run({b, h, q}, k, count, nullptr);
                        values_.insert(values_.end(), interpreter.booleans(), interpreter.booleans() + count);
                    }
                }
            }
        }
    }
    /// 0 empty, 1 partial, 2 full.
    int kind(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) const {
        std::int64_t allowed = 0;
        std::int64_t all = 0;
        for (std::int64_t q = row * shape_.queryBlock; q < std::min((row + 1) * shape_.queryBlock, shape_.queries);
             ++q) {
            for (std::int64_t k = column * shape_.keyBlock; k < std::min((column + 1) * shape_.keyBlock, shape_.keys);
                 ++k) {
                allowed += at(b, h, q, k);
                ++all;
            }
        }
        return allowed == 0 ? 0 : allowed == all ? 2 : 1;
    }
    double density() const {
        return static_cast<double>(std::count(values_.begin(), values_.end(), 1)) / static_cast<double>(values_.size());
    }

private:
    int at(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k) const {
        return values_[static_cast<std::size_t>(((b * shape_.heads + h) * shape_.queries + q) * shape_.keys + k)];
    }
    BlockMaskShape shape_;
    std::vector<std::uint8_t> values_;
};

std::vector<int> expanded(std::span<const BlockRun> runs, std::int64_t length) {
    std::vector<int> kinds(static_cast<std::size_t>(length), 0);
    std::int32_t end = 0;
    for (const BlockRun& run : runs) {
        EXPECT_GE(run.first, end) << "runs ascend";
        EXPECT_GT(run.count, 0);
        end = run.first + run.count;
        EXPECT_LE(end, length);
        std::fill(kinds.begin() + run.first, kinds.begin() + end, run.full ? 2 : 1);
    }
    return kinds;
}

void expectExact(const Program& mask, const CaptureBinding& binding, const BlockMaskShape& shape) {
    base::ThreadPool pool(2);
    const BlockMask blocks = buildBlockMask(mask, binding, shape, pool);
    const Dense dense(mask, binding, shape);
    std::int64_t counts[3] = {0, 0, 0};
    for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (std::int64_t h = 0; h < shape.heads; ++h) {
            for (std::int64_t row = 0; row < shape.queryBlocks(); ++row) {
                const std::vector<int> kinds = expanded(blocks.row(b, h, row), shape.keyBlocks());
                for (std::int64_t column = 0; column < shape.keyBlocks(); ++column) {
                    const int kind = kinds[static_cast<std::size_t>(column)];
                    ASSERT_EQ(kind, dense.kind(b, h, row, column))
                        << printProgram(mask, "mask") << row << " " << column;
                    ++counts[kind];
                }
            }
            for (std::int64_t column = 0; column < shape.keyBlocks(); ++column) {
                const std::vector<int> kinds = expanded(blocks.column(b, h, column), shape.queryBlocks());
                for (std::int64_t row = 0; row < shape.queryBlocks(); ++row) {
                    ASSERT_EQ(kinds[static_cast<std::size_t>(row)], dense.kind(b, h, row, column));
                }
            }
        }
    }
    const std::int64_t repeated = shape.batch * shape.heads / (blocks.shape.batch * blocks.shape.heads);
    EXPECT_EQ(blocks.empty * repeated, counts[0]);
    EXPECT_EQ(blocks.partial * repeated, counts[1]);
    EXPECT_EQ(blocks.full * repeated, counts[2]);
    EXPECT_NEAR(elementDensity(blocks, mask, binding, pool), dense.density(), 1e-12) << printProgram(mask, "mask");
}

TEST(BlockMask, RandomProgramsOfAnyShape) {
    std::mt19937 random(17);
    const auto pick = [&](int most) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(most)) + 1; };
    for (int i = 0; i < vitrine::test::repetitions(250); ++i) {
        BlockMaskShape shape;
        shape.batch = pick(2);
        shape.heads = pick(3);
        shape.queries = pick(150);
        shape.keys = pick(300);
        shape.queryBlock = pick(i % 3 == 0 ? 200 : 20);
        shape.keyBlock = pick(i % 4 == 0 ? 200 : 20);
        testing::RandomProgram source(random, 200, 3);
        const Program mask = source.mask();
        const Captures captures = source.captures(mask);
        expectExact(mask, captures.binding, shape);
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST(BlockMask, UsualMasks) {
    const CaptureBinding none;
    expectExact(causalMask(), none, {1, 1, 1000, 1000, 128, 128});
    expectExact(slidingWindowMask(100), none, {1, 1, 777, 1024, 64, 32});
    expectExact(slidingWindowMask(5), none, {1, 1, 130, 130, 1, 1});
    expectExact(causalMask(), none, {1, 1, 5, 900, 128, 128});
}

TEST(BlockMask, BatchAndHeadsCollapseWhereTheyDoNotMatter) {
    base::ThreadPool pool(1);
    const BlockMask causal = buildBlockMask(causalMask(), {}, {8, 16, 512, 512, 128, 128}, pool);
    EXPECT_EQ(causal.shape.batch, 1);
    EXPECT_EQ(causal.shape.heads, 1);
    EXPECT_EQ(causal.full, 6);
    EXPECT_EQ(causal.partial, 4);
    EXPECT_EQ(causal.empty, 6);
    EXPECT_DOUBLE_EQ(causal.blockSparsity(), 1 - 10.0 / 16);
    EXPECT_DOUBLE_EQ(causal.fullShare(), 0.6);
    EXPECT_EQ(causal.row(7, 15, 3).size(), 2U);
    Maker m;
    const BlockMask byHead = buildBlockMask(m.finish((m.q - m.k) <= m.h), {}, {8, 16, 512, 512, 128, 128}, pool);
    EXPECT_EQ(byHead.shape.batch, 1);
    EXPECT_EQ(byHead.shape.heads, 16);
}

TEST(BlockMask, MillionTokensOfDocumentsInFewRuns) {
    std::mt19937 random(7);
    const std::int64_t length = std::int64_t{1} << 20;
    std::vector<std::int32_t> ids;
    std::int64_t allowed = 0;
    for (std::int32_t document = 0; static_cast<std::int64_t>(ids.size()) < length; ++document) {
        const std::int64_t left = length - static_cast<std::int64_t>(ids.size());
        const std::int64_t size = std::min<std::int64_t>(left, 1000 + random() % 19000);
        ids.insert(ids.end(), static_cast<std::size_t>(size), document);
        allowed += size * (size + 1) / 2;
    }
    Maker m;
    const Program mask =
        m.finish((m.q >= m.k) & (m.load("ids", ProgramType::Int32, {m.q}) == m.load("ids", ProgramType::Int32, {m.k})));
    Captures captures;
    captures.add(std::move(ids), Shape{length});
    base::ThreadPool pool(2);
    const BlockMask blocks = buildBlockMask(mask, captures.binding, {1, 1, length, length, 128, 128}, pool);
    EXPECT_LT(blocks.metadataBytes(), 4U << 20);
    const double elements = static_cast<double>(length) * static_cast<double>(length);
    EXPECT_NEAR(elementDensity(blocks, mask, captures.binding, pool) * elements, static_cast<double>(allowed), 0.5);
    EXPECT_THROW(denseBlockMask(blocks, false, std::uint64_t{1} << 30), base::BadInput);
}

TEST(BlockMask, CellsOfAPictureCountEveryBlock) {
    base::ThreadPool pool(1);
    std::mt19937 random(23);
    for (int i = 0; i < 40; ++i) {
        testing::RandomProgram source(random, 200, 3);
        const Program mask = source.mask();
        const Captures captures = source.captures(mask);
        const BlockMask blocks = buildBlockMask(mask, captures.binding, {1, 1, 190, 200, 7, 5}, pool);
        const int columns = 1 + static_cast<int>(random() % 60);
        const int rows = 1 + static_cast<int>(random() % 40);
        const std::int64_t k0 = static_cast<std::int64_t>(random() % 20);
        const std::int64_t q0 = static_cast<std::int64_t>(random() % 20);
        const std::int64_t k1 = 40;
        const std::int64_t q1 = 28;
        const std::vector<BlockCell> cells = blockCells(blocks, 0, 0, q0, q1, k0, k1, columns, rows);
        for (int y = 0; y < rows; ++y) {
            for (int x = 0; x < columns; ++x) {
                BlockCell expected;
                const std::int64_t row0 = q0 + y * (q1 - q0) / rows;
                const std::int64_t row1 = std::max(row0 + 1, q0 + (y + 1) * (q1 - q0) / rows);
                const std::int64_t column0 = k0 + x * (k1 - k0) / columns;
                const std::int64_t column1 = std::max(column0 + 1, k0 + (x + 1) * (k1 - k0) / columns);
                for (std::int64_t row = row0; row < row1; ++row) {
                    const std::vector<int> kinds = expanded(blocks.row(0, 0, row), 40);
                    for (std::int64_t column = column0; column < column1; ++column) {
                        const int kind = kinds[static_cast<std::size_t>(column)];
                        ++(kind == 2 ? expected.full : kind == 1 ? expected.partial : expected.empty);
                    }
                }
                const BlockCell& cell = cells[static_cast<std::size_t>(y * columns + x)];
                ASSERT_EQ(cell.full, expected.full);
                ASSERT_EQ(cell.partial, expected.partial);
                ASSERT_EQ(cell.empty, expected.empty);
            }
        }
    }
}

TEST(BlockMask, DenseArraysAreAsPyTorchs) {
    base::ThreadPool pool(1);
    const BlockMask blocks = buildBlockMask(causalMask(), {}, {1, 1, 200, 200, 128, 128}, pool);
    const DenseBlockMask ours = denseBlockMask(blocks, false, 1 << 20);
    EXPECT_EQ(ours.kvNumBlocks, (std::vector<std::int32_t>{1, 1}));
    EXPECT_EQ(ours.kvIndices, (std::vector<std::int32_t>{0, 1, 1, 0}));
    EXPECT_EQ(ours.fullKvNumBlocks, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(ours.fullKvIndices, (std::vector<std::int32_t>{0, 1, 0, 1}));
    const DenseBlockMask torch = denseBlockMask(blocks, true, 1 << 20);
    EXPECT_EQ(torch.kvNumBlocks, (std::vector<std::int32_t>{1, 2}));
    EXPECT_EQ(torch.fullKvNumBlocks, (std::vector<std::int32_t>{0, 0}));
    EXPECT_EQ(torch.qNumBlocks, (std::vector<std::int32_t>{2, 1}));
    EXPECT_EQ(torch.qIndices, (std::vector<std::int32_t>{0, 1, 1, 0}));
}

TEST(BlockMask, RefusesWhatItCannotBuild) {
    base::ThreadPool pool(1);
    EXPECT_THROW(buildBlockMask(softCapScore(2), {}, {1, 1, 8, 8, 4, 4}, pool), base::BadInput);
    EXPECT_THROW(buildBlockMask(causalMask(), {}, {1, 1, 0, 8, 4, 4}, pool), base::BadInput);
    EXPECT_THROW(buildBlockMask(causalMask(), {}, {1, 1, 8, 8, 4, 0}, pool), base::BadInput);
    EXPECT_THROW(buildBlockMask(causalMask(), {}, {1, 1, std::int64_t{1} << 30, 8, 1, 4}, pool), base::BadInput);
    base::StopSource stop;
    stop.request_stop();
    Maker m;
    EXPECT_THROW(buildBlockMask(m.finish((m.q * m.k) % 7 == m.number(3)), {}, {1, 1, 2048, 2048, 128, 128}, pool,
                                nullptr, stop.get_token()),
                 base::Cancelled);
}

} // namespace
} // namespace vitrine::kernels
