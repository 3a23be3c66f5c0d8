// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One attention step over a paged cache with random contents, and its comparison with the CPU. A test is a list of such
// cases: each is a test of its own, so that their references and kernels are computed side by side
// (gpu_tests_main.cpp).

#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <random>

#include "kernels/ops/attention/attention.h"
#include "kernels/ops/attention/kv_write.h"
#include "kernels/program/program_builder.h"
#include "tests/gpu/gpu_testing.h"
#include "tests/kernels/ops/attention/attention_programs.h"

namespace vitrine::kernels::testing {

struct AttentionCase {
    std::string name;
    std::vector<std::int64_t> past, added; ///< tokens of each sequence: of earlier steps, and rows of q
    std::int64_t heads, kvHeads, dim;
    std::int64_t pageTokens = 64;
    std::int64_t window = 0; ///< 0: none
    bool ring = false, causal = true, sinks = true;
    float softCap = 0;
    DType type = DType::BF16, cacheType = DType::BF16, outType = DType::BF16;
    std::int64_t extraPages = 0;
    std::string program = {}; ///< of AttentionPrograms: then window, causal and softCap do not count
    std::int64_t qExtra = 8;
    bool beside = false; ///< the step's own tokens are given beside a quantized cache that holds them too
};

inline std::int64_t longestOf(const AttentionCase& item) {
    std::int64_t longest = 1024;
    for (std::size_t i = 0; i < item.past.size(); ++i) {
        longest = std::max(longest, item.past[i] + item.added[i]);
    }
    return longest;
}

class AttentionScene {
public:
    explicit AttentionScene(const AttentionCase& item) : item_(item) {
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
            runOp(cpu, KvWrite{k, v, sequence, positions, view(here), true, !item.ring});
        }
        if (item.sinks) {
            sinks = normal(DType::BF16, Shape{item.heads}, random);
        }
        out = TestTensor(item.outType, Shape{tokens, item.heads, item.dim}, item.heads * item.dim + 8);
        lse = TestTensor(DType::F32, Shape{item.heads, tokens});
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

    const AttentionCase& item_;
    std::optional<KnownProgram> mask_, score_;
    std::optional<AttentionPrograms> programs_;
};

/// Output and log-sum-exp are the CPU's.
inline void expectSame(const AttentionCase& item) {
    SCOPED_TRACE(fmt::format("{} {}: past {} added {} pages of {} window {}", item.name, item.program,
                             fmt::join(item.past, " "), fmt::join(item.added, " "), item.pageTokens, item.window));
    AttentionScene scene(item);
    const bool wide = item.type == DType::F32;
    // Tiles of prefill and new tokens hold bytes with their scales rounded to bf16.
    const bool rounded = isQuantizedKv(item.cacheType) && !wide;
    expectSameOnGpu(*gpu(), scene,
                    {{&scene.out, wide      ? 1e-6
                                  : rounded ? 1e-2
                                            : 6e-3},
                     {&scene.lse, wide      ? 1e-6
                                  : rounded ? 3e-3
                                            : 1e-5}});
}

/// The name of a case as GoogleTest allows it.
inline std::string testName(const ::testing::TestParamInfo<AttentionCase>& item) {
    std::string name = item.param.cacheType == DType::BF16 ? "" : std::string(dtypeName(item.param.cacheType)) + "_";
    for (const char c : item.param.name) {
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    }
    return name;
}

} // namespace vitrine::kernels::testing
