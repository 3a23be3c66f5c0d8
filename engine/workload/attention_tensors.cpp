// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/attention_tensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "base/error.h"
#include "base/philox.h"
#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/ops/floats.h"
#include "kernels/program/program.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::Shape;

namespace {

constexpr double kMostElements = 1e10; ///< of random tensors

/// A float tensor of the file, in this dtype; None: as it is stored.
HostTensor readTensor(const SafetensorsFile& file, const TensorEntry& entry, DType dtype) {
    if (kernels::loadedType(entry.dtype) != kernels::ProgramType::Float) {
        throw base::BadInput(fmt::format("{}: {}: is {}; give float32, float64, bfloat16 or float16", file.path(),
                                         entry.name, kernels::dtypeName(entry.dtype)));
    }
    if (entry.shape.size() > static_cast<std::size_t>(kernels::kMaxRank)) {
        throw base::BadInput(fmt::format("{}: {}: has {} dimensions; (batch, heads, seq, headDim) is needed",
                                         file.path(), entry.name, entry.shape.size()));
    }
    const Shape shape(entry.shape);
    std::vector<std::byte> stored(entry.bytes);
    file.read(entry, 0, stored.data(), stored.size());
    if (dtype == DType::None || dtype == entry.dtype) {
        return {entry.dtype, shape, std::move(stored)};
    }
    HostTensor out{dtype, shape, std::vector<std::byte>(kernels::bytesOf(dtype, shape.count()))};
    std::vector<double> values(static_cast<std::size_t>(shape.count()));
    kernels::loadFloats(entry.dtype, stored.data(), 0, shape.count(), values.data());
    kernels::storeFloats(dtype, values.data(), shape.count(), out.bytes.data(), 0);
    return out;
}

constexpr std::int64_t kDraw = 4; ///< numbers of one draw

/// Normally distributed numbers that depend on the seed and the tensor alone.
HostTensor randomTensor(DType dtype, const Shape& shape, std::uint64_t seed, std::uint32_t stream,
                        base::ThreadPool& pool) {
    HostTensor out{dtype, shape, {}};
    const std::int64_t count = shape.count();
    out.bytes.resize(kernels::bytesOf(dtype, count));
    const std::int64_t draws = (count + kDraw - 1) / kDraw;
    pool.parallelFor(draws, 1 << 14, [&](std::int64_t beginDraw, std::int64_t endDraw, int) {
        const std::int64_t begin = beginDraw * kDraw;
        std::vector<float> values(static_cast<std::size_t>(std::min(endDraw * kDraw, count) - begin));
        for (std::size_t i = 0; i < values.size(); i += kDraw) {
            const auto words =
                base::philox4x32(base::philoxKey(seed, stream), static_cast<std::uint64_t>(begin) + i, 0);
            for (std::size_t j = 0; j < kDraw && i + j < values.size(); j += 2) {
                const float radius = std::sqrt(-2 * std::log(base::uniformOpen(words[j])));
                const float angle = 2 * std::numbers::pi_v<float> * base::uniformOpen(words[j + 1]);
                values[i + j] = radius * std::cos(angle);
                if (i + j + 1 < values.size()) {
                    values[i + j + 1] = radius * std::sin(angle);
                }
            }
        }
        kernels::storeFloats(dtype, values.data(), static_cast<std::int64_t>(values.size()), out.bytes.data(), begin);
    });
    return out;
}

} // namespace

AttentionSizes parseAttentionSizes(const std::string& text, const std::string& key) {
    constexpr std::size_t kMost = 6;
    std::vector<std::int64_t> numbers;
    bool good = true;
    for (std::size_t begin = 0; begin <= text.size() && good && numbers.size() <= kMost;) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        good = !part.empty() && part.size() <= 9 &&
               std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
               std::stoll(part) > 0;
        numbers.push_back(good ? std::stoll(part) : 0);
        begin = end + 1;
    }
    if (!good || (numbers.size() != kMost - 1 && numbers.size() != kMost)) {
        throw base::BadInput(fmt::format("{}: \"{}\" must be B,H,HKV,S,D or B,H,HKV,Q,KV,D: positive integers, as "
                                         "2,16,4,4096,64",
                                         key, text.substr(0, 80)));
    }
    return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[numbers.size() - 2], numbers.back()};
}

AttentionInputs readAttentionInputs(const std::string& path, DType dtype, bool backward, bool sinks) {
    const auto file = SafetensorsFile::open(path);
    const auto read = [&](const std::string& name, DType wanted) {
        const TensorEntry* entry = file->find(name);
        if (entry == nullptr) {
            throw base::BadInput(
                fmt::format("{}: {}: the file has no such tensor; add it, or give random sizes instead", path, name));
        }
        if (entry->shape.size() != 4) {
            throw base::BadInput(fmt::format("{}: {}: has {} dimensions; (batch, heads, seq, headDim) is needed", path,
                                             name, entry->shape.size()));
        }
        return readTensor(*file, *entry, wanted);
    };
    AttentionInputs out;
    out.q = read("q", dtype);
    out.k = read("k", out.q.dtype);
    out.v = read("v", out.q.dtype);
    if (backward) {
        out.gradOut = read("grad_out", out.q.dtype);
    }
    if (const TensorEntry* entry = file->find("sinks"); entry != nullptr && sinks) {
        out.sinks = readTensor(*file, *entry, DType::F32);
    }
    return out;
}

AttentionInputs randomAttentionInputs(const AttentionSizes& sizes, DType dtype, std::uint64_t seed, bool empty) {
    const Shape query{sizes.batch, sizes.heads, sizes.queries, sizes.headDim};
    const Shape key{sizes.batch, sizes.kvHeads, sizes.keys, sizes.headDim};
    const double elements = static_cast<double>(sizes.batch) * static_cast<double>(sizes.headDim) *
                            (static_cast<double>(sizes.heads) * static_cast<double>(sizes.queries) +
                             static_cast<double>(sizes.kvHeads) * static_cast<double>(sizes.keys));
    if (elements > kMostElements) {
        throw base::BadInput(fmt::format("random: {:.3g} elements are too many; choose smaller sizes", elements));
    }
    if (empty) {
        return {{dtype, query, {}}, {dtype, key, {}}, {dtype, key, {}}, HostTensor{dtype, query, {}}, {}};
    }
    base::ThreadPool pool;
    return {randomTensor(dtype, query, seed, 0, pool),
            randomTensor(dtype, key, seed, 1, pool),
            randomTensor(dtype, key, seed, 2, pool),
            randomTensor(dtype, query, seed, 3, pool),
            {}};
}

void checkAttentionInputs(const AttentionInputs& in, const std::string& place) {
    const auto fail = [&](std::string_view name, const std::string& what) {
        throw base::BadInput(fmt::format("{}: {}: {}", place, name, what));
    };
    const Shape& q = in.q.shape;
    if (q.count() <= 0 || in.k.shape.count() <= 0) {
        fail("q", "it is empty; every side of q, k and v must be at least 1");
    }
    if (in.k.shape[0] != q[0] || in.k.shape[3] != q[3]) {
        fail("k", fmt::format("shape {} beside q's {}; batch and headDim must agree", in.k.shape.text(), q.text()));
    }
    if (in.v.shape != in.k.shape) {
        fail("v", fmt::format("shape {} where k has {}; they must agree", in.v.shape.text(), in.k.shape.text()));
    }
    if (q[1] % in.k.shape[1] != 0) {
        fail("k", fmt::format("{} heads, and q has {}; q's must be a multiple", in.k.shape[1], q[1]));
    }
    if (in.gradOut.has_value() && in.gradOut->shape != q) {
        fail("grad_out", fmt::format("shape {} where q has {}; they must agree", in.gradOut->shape.text(), q.text()));
    }
    if (in.sinks.has_value() && in.sinks->shape != Shape{q[1]}) {
        fail("sinks", fmt::format("shape {}; one for each of the {} heads is needed", in.sinks->shape.text(), q[1]));
    }
}

} // namespace vitrine::engine
