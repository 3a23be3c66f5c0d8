// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/attention/attention_tensors.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <span>

#include "base/error.h"
#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/workload/attention/normal_numbers.h"
#include "kernels/core/floats.h"
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

/// Normally distributed numbers that depend on the seed and the tensor alone.
HostTensor randomTensor(DType dtype, const Shape& shape, std::uint64_t seed, std::uint32_t stream,
                        base::ThreadPool& pool) {
    HostTensor out{dtype, shape, {}};
    const std::int64_t count = shape.count();
    out.bytes.resize(kernels::bytesOf(dtype, count));
    const std::int64_t draws = (count + kNormalDraw - 1) / kNormalDraw;
    pool.parallelFor(draws, 1 << 13, [&](std::int64_t beginDraw, std::int64_t endDraw, int) {
        std::array<float, 1024> piece; // stays in the first-level cache
        const std::int64_t end = std::min(endDraw * kNormalDraw, count);
        for (std::int64_t begin = beginDraw * kNormalDraw; begin < end; begin += std::ssize(piece)) {
            const std::span<float> part(piece.data(), std::min(piece.size(), static_cast<std::size_t>(end - begin)));
            normalNumbers(seed, stream, begin, part);
            kernels::storeFloats(dtype, part.data(), std::ssize(part), out.bytes.data(), begin);
        }
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

AttentionInputs randomAttentionInputs(const AttentionSizes& sizes, DType dtype, std::uint64_t seed, bool backward,
                                      bool empty) {
    const Shape query{sizes.batch, sizes.heads, sizes.queries, sizes.headDim};
    const Shape key{sizes.batch, sizes.kvHeads, sizes.keys, sizes.headDim};
    const double elements = static_cast<double>(sizes.batch) * static_cast<double>(sizes.headDim) *
                            (static_cast<double>(sizes.heads) * static_cast<double>(sizes.queries) +
                             static_cast<double>(sizes.kvHeads) * static_cast<double>(sizes.keys));
    if (elements > kMostElements) {
        throw base::BadInput(fmt::format("random: {:.3g} elements are too many; choose smaller sizes", elements));
    }
    base::ThreadPool pool;
    const auto make = [&](const Shape& shape, std::uint32_t stream) {
        return empty ? HostTensor{dtype, shape, {}} : randomTensor(dtype, shape, seed, stream, pool);
    };
    AttentionInputs out{make(query, 0), make(key, 1), make(key, 2), {}, {}};
    if (backward) {
        out.gradOut = make(query, 3);
    }
    return out;
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
