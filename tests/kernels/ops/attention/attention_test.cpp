// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"

#include <fmt/format.h>

#include "kernels/ops/attention/kv_write.h"
#include "kernels/program/program_builder.h"
#include "tests/kernels/ops/attention/attention_programs.h"
#include "tests/kernels/ops/attention/kv_reference.h"
#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

/// One sequence: tokens that an earlier step wrote, and the new ones, with all keys and values as double.
struct Sequence {
    std::int64_t past = 0;
    std::int64_t added = 0;
};

struct Case {
    std::vector<Sequence> sequences;
    std::int64_t heads = 4, kvHeads = 2, dim = 16;
    std::int64_t pageTokens = 8;
    std::int64_t window = 0; ///< 0: none
    float softCap = 0;
    bool sinks = false, causal = true;
    std::string_view program = {}; ///< of AttentionPrograms: then window, causal and softCap do not count
    bool ring = false;             ///< pages hold window tokens, new keys beside them
    DType type = DType::F32;
    DType cacheType = DType::F32;
};

std::int64_t longestOf(const Case& c) {
    std::int64_t longest = 128;
    for (const Sequence& s : c.sequences) {
        longest = std::max(longest, s.past + s.added);
    }
    return longest;
}

class Scene {
public:
    Scene(const Case& c, std::mt19937& random) : c_(c) {
        if (!c.program.empty()) {
            programs_.emplace(c.program, static_cast<std::int64_t>(c.sequences.size()), c.heads, longestOf(c));
        } else if (c.causal) {
            mask_.emplace(slidingWindowMask(c.window));
        }
        if (c.softCap > 0) {
            score_.emplace(softCapScore(c.softCap));
        }
        const auto batch = static_cast<std::int64_t>(c.sequences.size());
        std::vector<std::int32_t> offsets{0}, positions, sequence, first, lengths;
        std::int64_t longest = 1;
        for (std::int64_t b = 0; b < batch; ++b) {
            const Sequence& s = c.sequences[static_cast<std::size_t>(b)];
            offsets.push_back(offsets.back() + static_cast<std::int32_t>(s.added));
            for (std::int64_t i = 0; i < s.added; ++i) {
                positions.push_back(static_cast<std::int32_t>(s.past + i));
                sequence.push_back(static_cast<std::int32_t>(b));
            }
            const std::int64_t kept = c.ring ? std::min(s.past, c.window) : s.past + s.added;
            first.push_back(static_cast<std::int32_t>(c.ring ? s.past - kept : 0));
            lengths.push_back(static_cast<std::int32_t>(kept));
            longest = std::max(longest, c.ring ? c.window : kept);
        }
        tokens = offsets.back();
        const std::int64_t perSequence = (longest + c.pageTokens - 1) / c.pageTokens;
        const std::int64_t pages = perSequence * batch;
        keys = TestTensor(c.cacheType, Shape{pages, c.pageTokens, c.kvHeads, c.dim});
        values = TestTensor(c.cacheType, Shape{pages, c.pageTokens, c.kvHeads, c.dim});
        if (isQuantizedKv(c.cacheType)) {
            keyScales = TestTensor(DType::F32, Shape{pages, c.kvHeads, c.pageTokens});
            valueScales = TestTensor(DType::F32, Shape{pages, c.kvHeads, c.pageTokens}, c.kvHeads * c.pageTokens + 5);
        }
        std::vector<std::int32_t> table(static_cast<std::size_t>(pages));
        for (std::size_t i = 0; i < table.size(); ++i) {
            table[i] = static_cast<std::int32_t>(i);
        }
        std::shuffle(table.begin(), table.end(), random);
        blockTable = ints(Shape{batch, perSequence}, table);
        firstTensor = ints(Shape{batch}, first);
        lengthTensor = ints(Shape{batch}, lengths);
        offsetTensor = ints(Shape{batch + 1}, offsets);
        positionTensor = ints(Shape{tokens}, positions);
        sequenceTensor = ints(Shape{tokens}, sequence);
        q = normal(c.type, Shape{tokens, c.heads, c.dim}, random, c.heads * c.dim + 6);
        k = normal(c.type, Shape{tokens, c.kvHeads, c.dim}, random, c.kvHeads * c.dim + 2);
        v = normal(c.type, Shape{tokens, c.kvHeads, c.dim}, random);
        addedK_ = testing::asCached(c.cacheType, k.values(), c.dim);
        addedV_ = testing::asCached(c.cacheType, v.values(), c.dim);
        sinkTensor = normal(DType::BF16, Shape{c.heads}, random);
        out = TestTensor(c.type, Shape{tokens, c.heads, c.dim});
        lse = TestTensor(DType::F32, Shape{c.heads, tokens});
        view = KvView{keys, values, blockTable, firstTensor, lengthTensor, 0, c.ring, keyScales, valueScales};
        writePast(random);
    }

    Attention op() const {
        Attention attention;
        attention.q = q;
        attention.offsets = offsetTensor;
        attention.positions = positionTensor;
        attention.cache = view;
        if (c_.ring) {
            attention.newK = k;
            attention.newV = v;
        }
        if (c_.sinks) {
            attention.sinks = sinkTensor;
        }
        if (programs_.has_value()) {
            const auto here = [](const TestTensor& tensor) { return tensor.view(); };
            attention.mask = programs_->mask(here);
            attention.score = programs_->score(here);
        }
        if (mask_.has_value()) {
            attention.mask = mask_->bound();
        }
        if (score_.has_value()) {
            attention.score = score_->bound();
        }
        attention.scale = 0.3F;
        attention.out = out;
        attention.lse = lse;
        return attention;
    }

    const KnownProgram* maskProgram() const { return programs_->maskProgram(); }

    /// Into the cache, or into a ring's new keys, which are then what it will hold.
    KvWrite write() const { return {k, v, sequenceTensor, positionTensor, view, true, !c_.ring}; }

    void expectReference() const {
        std::vector<double> expected;
        std::vector<double> expectedLse(static_cast<std::size_t>(c_.heads * tokens));
        std::int64_t row = 0;
        for (std::size_t b = 0; b < c_.sequences.size(); ++b) {
            for (std::int64_t i = 0; i < c_.sequences[b].added; ++i, ++row) {
                for (std::int64_t h = 0; h < c_.heads; ++h) {
                    reference(b, row, h, c_.sequences[b].past + i, expected, expectedLse);
                }
            }
        }
        testing::expectNear(out, expected, 3e-5);
        testing::expectNear(lse, expectedLse, 3e-5);
    }

    std::int64_t tokens = 0;
    TestTensor keys, values, keyScales, valueScales, blockTable, firstTensor, lengthTensor, offsetTensor,
        positionTensor, sequenceTensor;
    TestTensor q, k, v, sinkTensor, out, lse;
    KvView view;

private:
    static TestTensor ints(const Shape& shape, const std::vector<std::int32_t>& numbers) {
        TestTensor tensor(DType::I32, shape);
        tensor.fillInts(numbers);
        return tensor;
    }
    static TestTensor normal(DType type, const Shape& shape, std::mt19937& random, std::int64_t stride = 0) {
        TestTensor tensor(type, shape, stride);
        tensor.fillNormal(random);
        return tensor;
    }

    /// Past keys by KvWrite, one token at a time as decoding does (a ring drops what the window has passed).
    void writePast(std::mt19937& random) {
        CpuContext context(1);
        pastK_.resize(c_.sequences.size());
        pastV_.resize(c_.sequences.size());
        for (std::size_t b = 0; b < c_.sequences.size(); ++b) {
            for (std::int64_t p = 0; p < c_.sequences[b].past; ++p) {
                const DType type = isQuantizedKv(c_.cacheType) ? DType::F32 : c_.cacheType;
                const TestTensor key = normal(type, Shape{1, c_.kvHeads, c_.dim}, random);
                const TestTensor value = normal(type, Shape{1, c_.kvHeads, c_.dim}, random);
                pastK_[b].push_back(testing::asCached(c_.cacheType, key.values(), c_.dim));
                pastV_[b].push_back(testing::asCached(c_.cacheType, value.values(), c_.dim));
                const TestTensor sequence = ints(Shape{1}, {static_cast<std::int32_t>(b)});
                const TestTensor position = ints(Shape{1}, {static_cast<std::int32_t>(p)});
                testing::runOp(context, KvWrite{key, value, sequence, position, view});
            }
        }
    }

    double element(bool isKey, std::size_t b, std::int64_t p, std::int64_t at) const {
        const auto& past = isKey ? pastK_ : pastV_;
        const TensorView& added = isKey ? k : v;
        if (p < c_.sequences[b].past) {
            return past[b][static_cast<std::size_t>(p)][static_cast<std::size_t>(at)];
        }
        std::int64_t row = p - c_.sequences[b].past;
        for (std::size_t before = 0; before < b; ++before) {
            row += c_.sequences[before].added;
        }
        if (!c_.ring) { // in the cache
            return (isKey ? addedK_ : addedV_)[static_cast<std::size_t>(row * c_.kvHeads * c_.dim + at)];
        }
        double value = 0;
        loadFloats(added.dtype, added.data, row * added.stride0() + at, 1, &value);
        return value;
    }

    void reference(std::size_t b, std::int64_t row, std::int64_t h, std::int64_t position,
                   std::vector<double>& expected, std::vector<double>& expectedLse) const {
        const std::int64_t kvHead = h / (c_.heads / c_.kvHeads);
        const std::int64_t end = c_.sequences[b].past + c_.sequences[b].added;
        std::vector<double> query(static_cast<std::size_t>(c_.dim));
        loadFloats(c_.type, q.view().data, row * q.view().stride0() + h * c_.dim, c_.dim, query.data());
        double total = c_.sinks ? std::exp(sinkTensor.values()[static_cast<std::size_t>(h)]) : 0;
        std::vector<double> sums(static_cast<std::size_t>(c_.dim), 0.0);
        for (std::int64_t p = 0; p < end; ++p) {
            const testing::AttentionElement place{static_cast<std::int64_t>(b), h, position, p};
            if (programs_ ? !programs_->allowed(place)
                          : (c_.causal && p > position) || (c_.window > 0 && p <= position - c_.window)) {
                continue;
            }
            double score = 0;
            for (std::int64_t d = 0; d < c_.dim; ++d) {
                score += query[static_cast<std::size_t>(d)] * element(true, b, p, kvHead * c_.dim + d);
            }
            score *= static_cast<double>(0.3F);
            if (c_.softCap > 0) {
                score = c_.softCap * std::tanh(score / c_.softCap);
            }
            score = programs_ ? programs_->scoreOf(score, place) : score;
            const double weight = std::exp(score);
            total += weight;
            for (std::int64_t d = 0; d < c_.dim; ++d) {
                sums[static_cast<std::size_t>(d)] += weight * element(false, b, p, kvHead * c_.dim + d);
            }
        }
        for (const double sum : sums) {
            expected.push_back(total == 0 ? 0 : sum / total);
        }
        expectedLse[static_cast<std::size_t>(h * tokens + row)] = std::log(total);
    }

    Case c_;
    std::optional<KnownProgram> mask_, score_;
    std::optional<testing::AttentionPrograms> programs_;
    std::vector<std::vector<std::vector<double>>> pastK_, pastV_;
    std::vector<double> addedK_, addedV_;
};

void expectCase(const Case& c, unsigned seed) {
    testing::forEachSimd([&](CpuContext& context) {
        std::mt19937 random(seed);
        const Scene scene(c, random);
        if (!c.ring || isQuantizedKv(c.cacheType)) {
            testing::runOp(context, scene.write());
        }
        testing::runOp(context, scene.op());
        scene.expectReference();
    });
}

TEST(Attention, RaggedPagesAgainstDouble) {
    expectCase({.sequences = {{0, 5}, {13, 1}, {40, 3}, {7, 0}, {0, 1}}}, 1);
    expectCase({.sequences = {{70, 1}}, .heads = 3, .kvHeads = 3, .dim = 24, .pageTokens = 128}, 2);
    expectCase({.sequences = {{3, 50}, {33, 31}}, .heads = 8, .kvHeads = 1, .dim = 7, .pageTokens = 5}, 3);
    expectCase({.sequences = {{2, 3}}, .heads = 40, .kvHeads = 2, .dim = 64, .pageTokens = 4}, 4);
}

TEST(Attention, SinksWindowsAndSoftCap) {
    expectCase({.sequences = {{0, 5}, {50, 2}}, .sinks = true}, 5);
    expectCase({.sequences = {{0, 9}, {50, 2}}, .window = 4}, 6);
    expectCase({.sequences = {{20, 9}}, .window = 1, .sinks = true}, 7);
    expectCase({.sequences = {{0, 9}, {50, 2}}, .softCap = 2.5F}, 8);
    expectCase({.sequences = {{3, 9}}, .window = 6, .softCap = 1.0F, .sinks = true}, 9);
    expectCase({.sequences = {{3, 9}, {0, 4}}, .causal = false}, 10);
}

TEST(Attention, NarrowStorage) {
    expectCase({.sequences = {{0, 5}, {30, 1}}, .type = DType::BF16, .cacheType = DType::BF16}, 11);
    expectCase({.sequences = {{0, 5}, {30, 1}}, .type = DType::F16, .cacheType = DType::F16}, 12);
    expectCase({.sequences = {{30, 1}}, .type = DType::F64, .cacheType = DType::F64}, 13);
}

TEST(Attention, RingWithNewKeysBesideIt) {
    expectCase({.sequences = {{0, 20}, {5, 7}, {33, 12}, {8, 1}}, .pageTokens = 8, .window = 8, .ring = true}, 14);
    expectCase({.sequences = {{31, 40}}, .pageTokens = 4, .window = 10, .sinks = true, .ring = true}, 15);
}

TEST(Attention, BytesWithScales) {
    for (const DType cacheType : {DType::I8, DType::F8E4M3}) {
        SCOPED_TRACE(dtypeName(cacheType));
        expectCase({.sequences = {{0, 5}, {13, 1}, {40, 3}, {7, 0}, {0, 1}}, .cacheType = cacheType}, 40);
        expectCase({.sequences = {{3, 50}, {33, 31}},
                    .heads = 8,
                    .kvHeads = 1,
                    .dim = 7,
                    .pageTokens = 5,
                    .cacheType = cacheType},
                   41);
        expectCase(
            {.sequences = {{0, 20}, {5, 7}, {33, 12}, {8, 1}}, .window = 8, .ring = true, .cacheType = cacheType}, 42);
        expectCase({.sequences = {{0, 9}, {50, 2}}, .sinks = true, .type = DType::BF16, .cacheType = cacheType}, 43);
        expectCase({.sequences = {{30, 2}}, .type = DType::F64, .cacheType = cacheType}, 44);
    }
}

TEST(Attention, ProgramsBeyondCausal) {
    unsigned seed = 30;
    for (const std::string_view name : testing::AttentionPrograms::kNames) {
        SCOPED_TRACE(name);
        expectCase({.sequences = {{0, 37}, {50, 20}, {41, 1}, {7, 0}, {100, 3}}, .program = name}, ++seed);
        expectCase({.sequences = {{33, 31}, {60, 1}}, .dim = 24, .pageTokens = 5, .sinks = true, .program = name},
                   ++seed);
    }
}

TEST(Attention, SparseMasksOverLongContexts) {
    std::mt19937 random(std::random_device{}());
    const auto any = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
    for (const std::string_view name : testing::AttentionPrograms::kSparse) {
        const unsigned seed = static_cast<unsigned>(any(0, 1 << 30));
        const Case c{.sequences = {{any(600, 1300), any(1, 3)}, {any(0, 300), any(0, 40)}, {any(500, 800), 1}},
                     .heads = 6,
                     .kvHeads = any(0, 1) == 0 ? 2 : 6,
                     .dim = 8,
                     .pageTokens = any(1, 90),
                     .sinks = any(0, 1) == 0,
                     .program = name};
        SCOPED_TRACE(fmt::format("{} seed {} past {} {} {} pages of {}", name, seed, c.sequences[0].past,
                                 c.sequences[1].past, c.sequences[2].past, c.pageTokens));
        std::mt19937 own(seed);
        const Scene scene(c, own);
        CpuContext context(2);
        testing::runOp(context, scene.write());
        testing::runOp(context, scene.op());
        scene.expectReference();
    }
}

TEST(Attention, RandomMasks) {
    std::mt19937 random(std::random_device{}());
    for (int i = 0; i < 30; ++i) {
        const std::string name = testing::AttentionPrograms::random(random);
        SCOPED_TRACE(name);
        expectCase({.sequences = {{static_cast<std::int64_t>(random() % 500), 1 + i % 4}, {30, 12}},
                    .heads = 3,
                    .kvHeads = i % 2 == 0 ? 1 : 3,
                    .dim = 4,
                    .program = name},
                   3);
    }
}

void expectRowsTheSameAlone(const Case& c) {
    std::mt19937 random(16);
    const std::int64_t rows = c.sequences.front().added;
    const std::int64_t width = c.heads * c.dim;
    testing::forEachSimd([&](CpuContext& context) {
        const Scene scene(c, random);
        testing::runOp(context, scene.write());
        testing::runOp(context, scene.op());
        const std::vector<double> together = scene.out.values();
        for (std::int64_t row = 0; row < rows; row += 5) {
            Attention op = scene.op();
            TestTensor out(DType::F32, Shape{1, c.heads, c.dim});
            TestTensor offsets(DType::I32, Shape{2});
            offsets.fillInts({0, 1});
            op.q = sliceRows(op.q, row, row + 1);
            op.positions = sliceRows(op.positions, row, row + 1);
            op.offsets = offsets;
            op.lse = {};
            op.out = out;
            testing::runOp(context, op);
            const std::vector<double> alone = out.values();
            for (std::size_t i = 0; i < alone.size(); ++i) {
                ASSERT_EQ(alone[i], together[static_cast<std::size_t>(row * width) + i]);
            }
        }
    });
}

TEST(Attention, RowsAreTheSameAloneAndTogether) {
    expectRowsTheSameAlone({.sequences = {{20, 37}}, .heads = 4, .kvHeads = 4, .dim = 32});
    // Together the rows are worth an analysis of what the mask captures, alone they are not.
    expectRowsTheSameAlone(
        {.sequences = {{700, 21}}, .heads = 4, .kvHeads = 1, .dim = 8, .program = "prefix_document"});
}

TEST(Attention, ARowWithoutKeysGivesZero) {
    std::mt19937 random(17);
    const Scene scene({.sequences = {{0, 1}}}, random);
    CpuContext context(1);
    testing::runOp(context, scene.write());
    TestTensor position(DType::I32, Shape{1});
    position.fillInts({-1}); // before every key
    Attention op = scene.op();
    op.positions = position;
    testing::runOp(context, op);
    for (const double value : scene.out.values()) {
        EXPECT_EQ(value, 0);
    }
    for (const double value : scene.lse.values()) {
        EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
    }
}

TEST(Attention, WrongPageNumbersThrow) {
    std::mt19937 random(18);
    const Scene scene({.sequences = {{3, 2}}}, random);
    CpuContext context(1);
    TestTensor table(DType::I32, Shape{1, 1});
    table.fillInts({-1});
    Attention op = scene.op();
    op.cache.blockTable = table;
    EXPECT_THROW(testing::runOp(context, op), base::Internal);
}

TEST(Attention, ScratchDoesNotDependOnTheCache) {
    std::mt19937 random(19);
    const Scene small({.sequences = {{3, 2}}}, random);
    const Scene large({.sequences = {{300, 2}}}, random);
    EXPECT_EQ(scratch(small.op(), DeviceTraits{}), scratch(large.op(), DeviceTraits{}));
}

TEST(Attention, CostFollowsTheKeysThatRowsSee) {
    std::mt19937 random(20);
    const Scene scene({.sequences = {{31, 1}}, .window = 8}, random);
    Attention op = scene.op();
    op.cache.totalTokens = 32;
    const Cost windowed = cost(op, DeviceTraits{});
    const KnownProgram causal(causalMask());
    op.mask = causal.bound();
    const Cost full = cost(op, DeviceTraits{});
    EXPECT_EQ(full.flops, 4U * 32 * 4 * 16);
    EXPECT_EQ(windowed.flops, 4U * 8 * 4 * 16);
    EXPECT_EQ(full.bytesRead, 4U * 16 * 4 + 2U * 32 * 2 * 16 * 4);
    EXPECT_LT(windowed.bytesRead, full.bytesRead);
}

TEST(Attention, CheckNamesTheField) {
    std::mt19937 random(21);
    const Scene scene({.sequences = {{3, 2}}}, random);
    Attention op = scene.op();
    check(op);
    op.out.shape = Shape{2, 4, 8};
    testing::expectCheckNames(op, "out");
    op = scene.op();
    op.newK = scene.k;
    testing::expectCheckNames(op, "newK");
    op = scene.op();
    const KnownProgram cap(softCapScore(3));
    op.mask = cap.bound();
    testing::expectCheckNames(op, "mask");
    op = scene.op();
    op.cache.values.dtype = DType::BF16;
    testing::expectCheckNames(op, "cache.values");
}

} // namespace
} // namespace vitrine::kernels
