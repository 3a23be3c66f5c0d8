// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/ops/attention/kv_write.h"
#include "kernels/program/program_builder.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/attention/attention_programs.h"

namespace vitrine::kernels {
namespace {

using testing::TestTensor;

struct Case {
    std::string name;
    std::vector<std::int64_t> past, added; ///< tokens of each sequence: of earlier steps, and rows of q
    std::int64_t heads, kvHeads, dim;
    std::int64_t pageTokens = 64;
    std::int64_t window = 0; ///< 0: none
    bool ring = false, causal = true, sinks = true;
    float softCap = 0;
    DType type = DType::BF16, cacheType = DType::BF16, outType = DType::BF16;
    std::int64_t extraPages = 0;
    std::string_view program = {}; ///< of AttentionPrograms: then window, causal and softCap do not count
    std::int64_t qExtra = 8;
    bool beside = false; ///< the step's own tokens are given beside a quantized cache that holds them too
};

std::int64_t longestOf(const Case& item) {
    std::int64_t longest = 1024;
    for (std::size_t i = 0; i < item.past.size(); ++i) {
        longest = std::max(longest, item.past[i] + item.added[i]);
    }
    return longest;
}

class Scene {
public:
    explicit Scene(const Case& item) : item_(item) {
        if (!item.program.empty()) {
            programs_.emplace(item.program, static_cast<std::int64_t>(item.past.size()), item.heads, longestOf(item));
        } else if (item.causal) {
            mask_.emplace(slidingWindowMask(item.window));
        }
        if (item.softCap > 0) {
            score_.emplace(softCapScore(item.softCap));
        }
        std::mt19937 random(15);
        const auto batch = static_cast<std::int64_t>(item.past.size());
        std::vector<std::int32_t> offsetList{0}, positionList, firstList, lengthList, tableList;
        std::int64_t longest = 1;
        for (std::size_t b = 0; b < item.past.size(); ++b) {
            const std::int64_t past = item.past[b], added = item.added[b];
            offsetList.push_back(offsetList.back() + static_cast<std::int32_t>(added));
            for (std::int64_t i = 0; i < added; ++i) {
                positionList.push_back(static_cast<std::int32_t>(past + i));
            }
            const std::int64_t kept = item.ring ? std::min(past, item.window - 1) : past + added;
            firstList.push_back(static_cast<std::int32_t>(item.ring ? past - kept : 0));
            lengthList.push_back(static_cast<std::int32_t>(kept));
            longest = std::max(longest, item.ring ? item.window - 1 : kept);
        }
        const std::int64_t used = (longest + item.pageTokens - 1) / item.pageTokens;
        const std::int64_t columns = used + item.extraPages;
        std::vector<std::int32_t> pages(static_cast<std::size_t>(used * batch));
        std::iota(pages.begin(), pages.end(), 0);
        std::shuffle(pages.begin(), pages.end(), random);
        for (std::int64_t i = 0; i < batch * columns; ++i) {
            const std::int64_t column = i % columns;
            tableList.push_back(column < used ? pages[static_cast<std::size_t>(i / columns * used + column)] : -1);
        }
        const std::int64_t tokens = offsetList.back(), width = item.kvHeads * item.dim;
        keys = normal(item.cacheType, Shape{used * batch, item.pageTokens, item.kvHeads, item.dim}, random,
                      item.pageTokens * width + 16);
        values = normal(item.cacheType, Shape{used * batch, item.pageTokens, item.kvHeads, item.dim}, random,
                        item.pageTokens * width + (isQuantizedKv(item.cacheType) ? 48 : 24));
        if (isQuantizedKv(item.cacheType)) {
            // Scales of whole runs of 32 are brought by one copy where it may begin.
            keyScales = scalesOf(Shape{used * batch, item.kvHeads, item.pageTokens}, random, item.beside ? 4 : 3);
            valueScales = scalesOf(Shape{used * batch, item.kvHeads, item.pageTokens}, random, 0);
        }
        for (TestTensor* pool : {&keys, &values}) {
            poisonUnused(*pool, pages, used, firstList, lengthList);
        }
        table = ints(Shape{batch, columns}, tableList);
        first = ints(Shape{batch}, firstList);
        lengths = ints(Shape{batch}, lengthList);
        offsets = ints(Shape{batch + 1}, offsetList);
        positions = ints(Shape{tokens}, positionList);
        q = normal(item.type, Shape{tokens, item.heads, item.dim}, random, item.heads * item.dim + item.qExtra);
        if (item.ring || item.beside) {
            k = normal(item.type, Shape{tokens, item.kvHeads, item.dim}, random, width + 8);
            v = normal(item.type, Shape{tokens, item.kvHeads, item.dim}, random);
        }
        if (isQuantizedKv(item.cacheType) && k.view().data != nullptr) {
            // New tokens are what the cache holds of them.
            std::vector<std::int32_t> sequenceList;
            for (std::size_t b = 0; b < item.added.size(); ++b) {
                sequenceList.insert(sequenceList.end(), static_cast<std::size_t>(item.added[b]),
                                    static_cast<std::int32_t>(b));
            }
            const TestTensor sequence = ints(Shape{tokens}, sequenceList);
            CpuContext cpu(1);
            const auto here = [](const TestTensor& tensor) { return tensor.view(); };
            testing::runOp(cpu, KvWrite{k, v, sequence, positions, view(here), true, !item.ring});
        }
        if (item.sinks) {
            sinks = normal(DType::BF16, Shape{item.heads}, random);
        }
        out = TestTensor(item.outType, Shape{tokens, item.heads, item.dim}, item.heads * item.dim + 8);
        lse = TestTensor(DType::F32, Shape{tokens, item.heads});
    }

    template <class At> Attention operator()(At&& at) const {
        Attention op;
        op.q = at(q);
        op.offsets = at(offsets);
        op.positions = at(positions);
        op.cache = view(at);
        op.newK = at(k);
        op.newV = at(v);
        op.sinks = at(sinks);
        if (programs_.has_value()) {
            op.mask = programs_->mask(at);
            op.score = programs_->score(at);
        }
        if (mask_.has_value()) {
            op.mask = mask_->bound();
        }
        if (score_.has_value()) {
            op.score = score_->bound();
        }
        op.scale = 1 / std::sqrt(static_cast<float>(item_.dim));
        op.out = at(out);
        op.lse = at(lse);
        return op;
    }

    template <class At> KvView view(At&& at) const {
        return {at(keys), at(values), at(table), at(first), at(lengths), 0, item_.ring, at(keyScales), at(valueScales)};
    }

    TestTensor keys, values, keyScales, valueScales, table, first, lengths, offsets, positions, q, k, v, sinks, out,
        lse;

private:
    static TestTensor ints(const Shape& shape, const std::vector<std::int32_t>& numbers) {
        TestTensor tensor(DType::I32, shape);
        tensor.fillInts(numbers);
        return tensor;
    }
    static TestTensor normal(DType type, const Shape& shape, std::mt19937& random, std::int64_t stride = 0) {
        TestTensor tensor(type, shape, stride);
        if (type == DType::I8) {
            tensor.fillBytes(random, 0, 255);
        } else if (type == DType::F8E4M3) {
            tensor.fillBytes(random, 0, 0x7E); // 0x7F is NaN
            for (std::int64_t i = 0; i < shape.count(); ++i) {
                const std::int64_t row = shape.count() / shape[0];
                tensor.view().as<std::uint8_t>()[i / row * tensor.view().stride0() + i % row] ^= random() % 2 * 0x80;
            }
        } else {
            tensor.fillNormal(random);
        }
        return tensor;
    }
    /// With which bytes become about as large as normal values.
    TestTensor scalesOf(const Shape& shape, std::mt19937& random, std::int64_t extra) const {
        TestTensor tensor(DType::F32, shape, shape.count() / shape[0] + extra);
        std::uniform_real_distribution<double> uniform(0.5, 1.5);
        std::vector<double> scales(static_cast<std::size_t>(shape.count()));
        for (double& scale : scales) {
            scale = uniform(random) / (item_.cacheType == DType::I8 ? 70 : 60);
        }
        tensor.fill(scales);
        return tensor;
    }

    /// Slots of pages that hold no token are NaN. `pages`: `used` of each sequence.
    void poisonUnused(TestTensor& pool, const std::vector<std::int32_t>& pages, std::int64_t used,
                      const std::vector<std::int32_t>& begins, const std::vector<std::int32_t>& counts) const {
        const std::int64_t width = item_.kvHeads * item_.dim, capacity = used * item_.pageTokens;
        for (std::size_t b = 0; b < begins.size(); ++b) {
            std::vector<std::uint8_t> holds(static_cast<std::size_t>(capacity), 0);
            for (std::int64_t i = 0; i < counts[b]; ++i) {
                holds[static_cast<std::size_t>(item_.ring ? (begins[b] + i) % capacity : i)] = 1;
            }
            for (std::int64_t at = 0; at < capacity; ++at) {
                const std::int64_t page =
                    pages[b * static_cast<std::size_t>(used) + static_cast<std::size_t>(at / item_.pageTokens)];
                const std::int64_t offset = page * pool.view().stride0() + at % item_.pageTokens * width;
                if (holds[static_cast<std::size_t>(at)] == 0) {
                    const TestTensor& scales = &pool == &keys ? keyScales : valueScales;
                    for (std::int64_t head = 0; scales.view().data != nullptr && head < item_.kvHeads; ++head) {
                        scales.view().as<float>()[page * scales.view().stride0() + head * item_.pageTokens +
                                                  at % item_.pageTokens] = std::nanf("");
                    }
                    std::memset(pool.view().as<std::byte>() + bytesOf(item_.cacheType, offset), 0xFF,
                                bytesOf(item_.cacheType, width));
                }
            }
        }
    }

    const Case& item_;
    std::optional<KnownProgram> mask_, score_;
    std::optional<testing::AttentionPrograms> programs_;
};

void expectSame(const Case& item) {
    SCOPED_TRACE(item.name);
    Scene scene(item);
    const bool wide = item.type == DType::F32;
    // Tiles of prefill and new tokens hold bytes with their scales rounded to bf16.
    const bool rounded = isQuantizedKv(item.cacheType) && !wide;
    testing::expectSameOnGpu(*testing::gpu(), scene, {&scene.out}, wide ? 1e-6 : rounded ? 1e-2 : 6e-3);
    testing::expectSameOnGpu(*testing::gpu(), scene, {&scene.lse}, wide ? 1e-6 : rounded ? 3e-3 : 1e-5);
}

TEST(AttentionGpu, SingleRows) {
    VITRINE_NEEDS_GPU();
    expectSame({.name = "groups of 8",
                .past = {0, 16, 299, 1023, 2999},
                .added = {1, 1, 1, 1, 1},
                .heads = 64,
                .kvHeads = 8,
                .dim = 64});
    for (const std::int64_t dim : {64, 128}) { // long heads are cut into more parts than multiprocessors
        expectSame({.name = "long rows, head dim " + std::to_string(dim),
                    .past = {39'999, 17'471, 2999, 20'000},
                    .added = {1, 1, 1, 1},
                    .heads = 8,
                    .kvHeads = 8,
                    .dim = dim});
    }
    expectSame({.name = "a table wider than needed",
                .past = {5, 700},
                .added = {1, 1},
                .heads = 16,
                .kvHeads = 2,
                .dim = 64,
                .pageTokens = 128,
                .extraPages = 60});
    expectSame({.name = "ring",
                .past = {1, 100, 127, 128, 1000},
                .added = {1, 1, 1, 1, 1},
                .heads = 64,
                .kvHeads = 8,
                .dim = 64,
                .pageTokens = 43,
                .window = 128,
                .ring = true});
    expectSame({.name = "window without ring",
                .past = {4, 500, 900},
                .added = {1, 1, 1},
                .heads = 6,
                .kvHeads = 2,
                .dim = 96,
                .pageTokens = 32,
                .window = 300});
    expectSame({.name = "groups of 7, soft cap",
                .past = {4, 600},
                .added = {1, 1},
                .heads = 28,
                .kvHeads = 4,
                .dim = 128,
                .pageTokens = 16,
                .sinks = false,
                .softCap = 20});
    expectSame({.name = "groups of 20", .past = {4, 600}, .added = {1, 1}, .heads = 40, .kvHeads = 2, .dim = 80});
    expectSame({.name = "head dim 256", .past = {4, 600}, .added = {1, 1}, .heads = 8, .kvHeads = 4, .dim = 256});
    expectSame({.name = "no groups, half floats",
                .past = {4, 600},
                .added = {1, 1},
                .heads = 3,
                .kvHeads = 3,
                .dim = 16,
                .type = DType::F16,
                .cacheType = DType::F16,
                .outType = DType::F32});
    expectSame({.name = "as many rows as sequences, but not one each",
                .past = {300, 5, 700, 64},
                .added = {2, 0, 1, 1},
                .heads = 8,
                .kvHeads = 2,
                .dim = 64});
}

TEST(AttentionGpu, ManyRowsAndMixedBatches) {
    VITRINE_NEEDS_GPU();
    expectSame({.name = "prefill", .past = {0, 23}, .added = {300, 77}, .heads = 16, .kvHeads = 2, .dim = 64});
    expectSame(
        {.name = "mixed", .past = {1000, 399, 128, 0}, .added = {130, 1, 2, 1}, .heads = 16, .kvHeads = 2, .dim = 64});
    expectSame({.name = "mixed ring",
                .past = {1000, 399, 128, 0},
                .added = {130, 1, 2, 1},
                .heads = 16,
                .kvHeads = 2,
                .dim = 64,
                .pageTokens = 43,
                .window = 128,
                .ring = true});
    expectSame({.name = "groups of 3, window",
                .past = {87},
                .added = {200},
                .heads = 6,
                .kvHeads = 2,
                .dim = 128,
                .pageTokens = 16,
                .window = 50,
                .sinks = false});
    expectSame({.name = "not causal",
                .past = {87, 0},
                .added = {60, 90},
                .heads = 4,
                .kvHeads = 2,
                .dim = 64,
                .causal = false,
                .softCap = 30});
    expectSame({.name = "head dim 256",
                .past = {10, 0},
                .added = {100, 3},
                .heads = 4,
                .kvHeads = 2,
                .dim = 256,
                .window = 70,
                .softCap = 50});
    for (const std::int64_t dim : {64, 96, 128}) {
        expectSame({.name = "more pieces than multiprocessors, head dim " + std::to_string(dim),
                    .past = {700, 3},
                    .added = {900, 301},
                    .heads = 32,
                    .kvHeads = 8,
                    .dim = dim,
                    .pageTokens = 128});
        expectSame({.name = "a long step beside a ring, head dim " + std::to_string(dim),
                    .past = {130, 0, 64},
                    .added = {500, 700, 65},
                    .heads = 16,
                    .kvHeads = 8,
                    .dim = dim,
                    .window = 128,
                    .ring = true});
    }
    expectSame({.name = "groups of 7",
                .past = {40, 0},
                .added = {300, 33},
                .heads = 14,
                .kvHeads = 2,
                .dim = 64,
                .pageTokens = 16});
    expectSame({.name = "head dim 192",
                .past = {10},
                .added = {100},
                .heads = 4,
                .kvHeads = 2,
                .dim = 192,
                .outType = DType::F32});
    for (const std::int64_t dim : {112, 144, 176, 208}) {
        expectSame({.name = "head dim " + std::to_string(dim),
                    .past = {10},
                    .added = {100},
                    .heads = 4,
                    .kvHeads = 2,
                    .dim = dim,
                    .softCap = 40});
    }
    expectSame({.name = "head dim 16, half floats",
                .past = {10},
                .added = {100},
                .heads = 4,
                .kvHeads = 2,
                .dim = 16,
                .type = DType::F16,
                .cacheType = DType::F16,
                .outType = DType::F16});
}

TEST(AttentionGpu, ProgramsBeyondCausal) {
    VITRINE_NEEDS_GPU();
    for (const std::string_view program : testing::AttentionPrograms::kNames) {
        const std::string name(program);
        expectSame({.name = name + ", single rows",
                    .past = {0, 63, 299, 900},
                    .added = {1, 1, 1, 1},
                    .heads = 16,
                    .kvHeads = 2,
                    .dim = 64,
                    .program = program});
        expectSame({.name = name + ", mixed",
                    .past = {300, 99, 0, 128, 700},
                    .added = {130, 1, 200, 2, 60},
                    .heads = 12,
                    .kvHeads = 4,
                    .dim = 128,
                    .pageTokens = 32,
                    .sinks = false,
                    .program = program});
        expectSame({.name = name + ", head dim 96",
                    .past = {33, 0},
                    .added = {100, 77},
                    .heads = 4,
                    .kvHeads = 2,
                    .dim = 96,
                    .pageTokens = 24,
                    .program = program});
        expectSame({.name = name + ", float32",
                    .past = {40, 0},
                    .added = {20, 33},
                    .heads = 4,
                    .kvHeads = 2,
                    .dim = 64,
                    .type = DType::F32,
                    .cacheType = DType::F32,
                    .outType = DType::F32,
                    .program = program});
    }
}

TEST(AttentionGpu, SparseMasksOverLongContexts) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(std::random_device{}());
    const auto any = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
    for (const std::string_view program : testing::AttentionPrograms::kSparse) {
        const std::string name(program);
        const Case single{.name = name + ", single rows",
                          .past = {any(4000, 9000), any(0, 700), 64, any(1000, 3000)},
                          .added = {1, 1, 1, 1},
                          .heads = 16,
                          .kvHeads = 2,
                          .dim = 64,
                          .pageTokens = any(1, 130),
                          .program = program};
        const Case mixed{.name = name + ", mixed",
                         .past = {any(1000, 3000), any(600, 1500), 0, any(0, 300)},
                         .added = {any(2, 150), 1, any(2, 400), 2},
                         .heads = 12,
                         .kvHeads = 4,
                         .dim = 128,
                         .pageTokens = 8 * any(1, 16),
                         .sinks = false,
                         .program = program};
        const Case portable{.name = name + ", head dim 96",
                            .past = {any(600, 2000), 0},
                            .added = {any(2, 100), any(2, 600)},
                            .heads = 4,
                            .kvHeads = 2,
                            .dim = 96,
                            .pageTokens = 24,
                            .program = program};
        const Case plain{.name = name + ", float32",
                         .past = {any(600, 1500), 0},
                         .added = {any(1, 20), any(1, 33)},
                         .heads = 4,
                         .kvHeads = 2,
                         .dim = 64,
                         .type = DType::F32,
                         .cacheType = DType::F32,
                         .outType = DType::F32,
                         .program = program};
        for (const Case& item : {single, mixed, portable, plain}) {
            SCOPED_TRACE(fmt::format("past {} added {} pages of {}", fmt::join(item.past, " "),
                                     fmt::join(item.added, " "), item.pageTokens));
            expectSame(item);
        }
    }
}

TEST(AttentionGpu, RandomMasks) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(std::random_device{}());
    for (int i = 0; i < 16; ++i) {
        const std::string name = testing::AttentionPrograms::random(random);
        SCOPED_TRACE(name);
        const auto past = static_cast<std::int64_t>(random() % 3000);
        expectSame({.name = name,
                    .past = {past, 600, 30},
                    .added = {1 + static_cast<std::int64_t>(random() % 200), 1, 40},
                    .heads = 4,
                    .kvHeads = 2,
                    .dim = 64,
                    .program = name});
    }
}

class AttentionOfBytesGpu : public ::testing::TestWithParam<DType> {};

TEST_P(AttentionOfBytesGpu, SingleRows) {
    VITRINE_NEEDS_GPU();
    for (const std::int64_t dim : {32, 64, 96, 128, 256}) {
        expectSame({.name = "head dim " + std::to_string(dim),
                    .past = {0, 16, 299, 1023, 2999},
                    .added = {1, 1, 1, 1, 1},
                    .heads = 24,
                    .kvHeads = 2,
                    .dim = dim,
                    .pageTokens = dim == 64 ? 64 : 48,
                    .cacheType = GetParam()});
    }
    // Cut into more parts than multiprocessors: a block takes two of them, or, of one row alone, one.
    for (const std::vector<std::int64_t>& past : {std::vector<std::int64_t>{30'000, 18'000, 299}, {20'000}}) {
        expectSame({.name = std::to_string(past.size()) + " long rows",
                    .past = past,
                    .added = std::vector<std::int64_t>(past.size(), 1),
                    .heads = 8,
                    .kvHeads = 8,
                    .dim = 64,
                    .cacheType = GetParam()});
    }
}

TEST_P(AttentionOfBytesGpu, ManyRows) {
    VITRINE_NEEDS_GPU();
    for (const std::int64_t dim : {32, 64, 96, 128, 256}) {
        expectSame({.name = "mixed, head dim " + std::to_string(dim),
                    .past = {1000, 399, 128, 0},
                    .added = {130, 1, 2, 1},
                    .heads = 16,
                    .kvHeads = 2,
                    .dim = dim,
                    .cacheType = GetParam(),
                    .beside = dim != 96});
    }
    expectSame({.name = "a mask without closed form",
                .past = {300, 99, 0, 128, 700},
                .added = {130, 1, 200, 2, 60},
                .heads = 12,
                .kvHeads = 4,
                .dim = 128,
                .pageTokens = 32,
                .sinks = false,
                .cacheType = GetParam(),
                .program = "document"});
}

TEST_P(AttentionOfBytesGpu, PiecesBehindPages) {
    VITRINE_NEEDS_GPU();
    std::mt19937 random(std::random_device{}());
    const auto any = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
    for (const std::int64_t dim : {64, 96, 128}) {
        for (const bool beside : {true, false}) {
            const Case item{.name = "head dim " + std::to_string(dim),
                            .past = {any(300, 1500), 128, any(0, 700), any(1, 60)},
                            .added = {any(2, 300), 256, any(60, 200), 1},
                            .heads = 16,
                            .kvHeads = 2,
                            .dim = dim,
                            .pageTokens = beside ? 32 * any(1, 4) : any(3, 130),
                            .window = beside ? 0 : any(100, 400),
                            .sinks = beside,
                            .softCap = dim == 96 ? 20.0F : 0.0F,
                            .cacheType = GetParam(),
                            .outType = beside ? DType::BF16 : DType::F32,
                            .beside = beside};
            SCOPED_TRACE(fmt::format("past {} added {} pages of {} window {}", fmt::join(item.past, " "),
                                     fmt::join(item.added, " "), item.pageTokens, item.window));
            expectSame(item);
        }
    }
    for (const std::string_view program : testing::AttentionPrograms::kSparse) {
        expectSame({.name = std::string(program),
                    .past = {any(1000, 3000), any(600, 1500), 0, any(0, 300)},
                    .added = {any(2, 150), 1, any(2, 400), 2},
                    .heads = 12,
                    .kvHeads = 4,
                    .dim = any(0, 1) == 0 ? 64 : 128,
                    .pageTokens = 8 * any(1, 16),
                    .sinks = false,
                    .cacheType = GetParam(),
                    .program = program,
                    .beside = true});
    }
}

/// A key is the same number where a step reads its own tokens as where a later one reads the cache.
TEST_P(AttentionOfBytesGpu, PiecesOfAPromptGiveTheSameBits) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    for (const std::int64_t dim : {32, 64, 96, 128}) {
        const Case item{.name = "pieces",
                        .past = {0},
                        .added = {700},
                        .heads = 16,
                        .kvHeads = 2,
                        .dim = dim,
                        .cacheType = GetParam(),
                        .beside = true};
        Scene scene(item);
        const auto rowsFrom = [&](std::int64_t begin) {
            TestTensor offsets(DType::I32, Shape{2});
            offsets.fillInts({0, static_cast<std::int32_t>(700 - begin)});
            testing::OnDevice device(context);
            Attention op = scene(device);
            op.offsets = device(offsets);
            for (TensorView* rows : {&op.q, &op.positions, &op.newK, &op.newV, &op.out, &op.lse}) {
                *rows = sliceRows(*rows, begin, 700);
            }
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

TEST_P(AttentionOfBytesGpu, Rings) {
    VITRINE_NEEDS_GPU();
    for (const std::int64_t window : {33, 128}) {
        expectSame({.name = "single rows",
                    .past = {1, 100, 127, 128, 1000},
                    .added = {1, 1, 1, 1, 1},
                    .heads = 64,
                    .kvHeads = 8,
                    .dim = 64,
                    .pageTokens = window == 33 ? 11 : 64,
                    .window = window,
                    .ring = true,
                    .cacheType = GetParam()});
        expectSame({.name = "mixed",
                    .past = {1000, 399, 128, 0, 3},
                    .added = {130, 1, 2, 1, 300},
                    .heads = 16,
                    .kvHeads = 2,
                    .dim = 64,
                    .pageTokens = 43,
                    .window = window,
                    .ring = true,
                    .cacheType = GetParam()});
    }
    for (const std::int64_t dim : {64, 96, 128}) {
        expectSame({.name = "a long step, head dim " + std::to_string(dim),
                    .past = {130, 0, 64, 900},
                    .added = {500, 700, 65, 3},
                    .heads = 16,
                    .kvHeads = 8,
                    .dim = dim,
                    .pageTokens = dim == 96 ? 40 : 64,
                    .window = 128,
                    .ring = true,
                    .cacheType = GetParam()});
    }
}

TEST_P(AttentionOfBytesGpu, WithoutTensorCores) {
    VITRINE_NEEDS_GPU();
    for (const bool ring : {false, true}) {
        expectSame({.name = ring ? "ring" : "pages",
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
                    .cacheType = GetParam(),
                    .outType = DType::F32});
    }
}

INSTANTIATE_TEST_SUITE_P(Every, AttentionOfBytesGpu, ::testing::Values(DType::I8, DType::F8E4M3),
                         [](const auto& item) { return std::string(dtypeName(item.param)); });

TEST(AttentionGpu, NewContentsCompileNothing) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    const auto runWith = [&](std::int64_t sequences) {
        const Case item{.name = "contents",
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

TEST(AttentionGpu, WithoutTensorCores) {
    VITRINE_NEEDS_GPU();
    expectSame({.name = "float32",
                .past = {299, 0, 88},
                .added = {1, 40, 2},
                .heads = 6,
                .kvHeads = 2,
                .dim = 64,
                .type = DType::F32,
                .cacheType = DType::F32,
                .outType = DType::F32});
    expectSame({.name = "float32 over a bf16 ring",
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
    expectSame({.name = "odd head dim", .past = {3}, .added = {4}, .heads = 6, .kvHeads = 2, .dim = 30});
    expectSame({.name = "unaligned rows", .past = {3}, .added = {4}, .heads = 6, .kvHeads = 2, .dim = 32, .qExtra = 3});
}

/// What one sequence's rows give does not depend on what else is in the batch.
TEST(AttentionGpu, RowsDoNotDependOnTheBatch) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    const Case item{
        .name = "batch", .past = {100, 1023, 40}, .added = {1, 1, 60}, .heads = 16, .kvHeads = 2, .dim = 64};
    Scene scene(item);
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
            op.lse = sliceRows(op.lse, 1, 2);
        }
        device.run(op);
        device.download(scene.out);
        const std::vector<double> all = scene.out.values();
        return std::vector<double>(all.begin() + 16 * 64, all.begin() + 2 * 16 * 64);
    };
    EXPECT_EQ(run(false), run(true));
}

TEST(AttentionGpu, RowsThatSeeNothingGiveZero) {
    VITRINE_NEEDS_GPU();
    CudaContext& context = *testing::gpu();
    for (const std::int64_t added : {1, 3}) {
        const Case item{
            .name = "nothing", .past = {0}, .added = {added}, .heads = 4, .kvHeads = 2, .dim = 64, .sinks = false};
        Scene scene(item);
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

TEST(AttentionGpu, ScratchFollowsFromShapesAndTraits) {
    const Case item{.name = "scratch", .past = {1023, 5}, .added = {1, 1}, .heads = 64, .kvHeads = 8, .dim = 64};
    const Scene scene(item);
    const Attention op = scene([](const TestTensor& tensor) { return tensor.view(); });
    const DeviceTraits gpu = loadDeviceProfile("h200");
    EXPECT_GT(scratch(op, gpu), 0U);
    EXPECT_EQ(scratch(op, cpuTraits(2)), 0U);
}

} // namespace
} // namespace vitrine::kernels
