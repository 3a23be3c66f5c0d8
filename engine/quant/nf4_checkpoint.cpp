// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/nf4_checkpoint.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/strict_json.h"
#include "kernels/formats/nf4_format.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::kNf4Group;
using kernels::kNf4ScaleGroup;
using nlohmann::json;

[[noreturn]] void badState(const std::string& name, std::string_view what) {
    throw base::BadInput(fmt::format("{}: {}", name, what));
}

/// A positive integer, or nothing.
std::optional<std::int64_t> countOf(const json& value) {
    if (!value.is_number_integer()) {
        return std::nullopt;
    }
    const auto count = value.get<std::int64_t>();
    return count > 0 ? std::optional(count) : std::nullopt;
}

/// Throws Unsupported unless the field is there with this number.
void requireGroup(const json& state, const char* field, std::int64_t size, const std::string& name) {
    const auto found = state.find(field);
    if (found == state.end() || countOf(*found) != size) {
        throw base::Unsupported(fmt::format("{}: {}: only groups of {} are supported", name, field, size));
    }
}

void readShape(const json& state, const std::string& name, Nf4State& out) {
    const auto shape = state.find("shape");
    if (shape == state.end() || !shape->is_array() || shape->size() != 2 || !countOf((*shape)[0]) ||
        !countOf((*shape)[1])) {
        badState(name, "shape: must be two positive integers");
    }
    out.out = *countOf((*shape)[0]);
    out.in = *countOf((*shape)[1]);
    std::int64_t count = 0;
    if (__builtin_mul_overflow(out.out, out.in, &count)) {
        badState(name, "shape: the product overflows");
    }
    if (out.in % kNf4Group != 0) {
        throw base::Unsupported(fmt::format("{}: shape: NF4 needs an input axis that is a multiple of {}, and it is {}",
                                            name, kNf4Group, out.in));
    }
}

void requireMap(std::span<const float> map, std::span<const float> expected, const std::string& name) {
    bool same = map.size() == expected.size();
    for (std::size_t i = 0; same && i < map.size(); ++i) {
        // Writers compute the map themselves, and may round its last bit otherwise.
        same = std::fabs(map[i] - expected[i]) <= 1e-6F * std::fabs(expected[i]);
    }
    if (!same) {
        badState(name, "the values are not those of NF4; the file is damaged or in another format");
    }
}

} // namespace

Nf4State parseNf4State(std::string_view text, const std::string& name) {
    base::JsonLimits limits;
    limits.maxBytes = 4096;
    limits.maxDepth = 4;
    const json state = base::parseStrictJson(text, name, limits);
    if (!state.is_object()) {
        badState(name, "must be a JSON object");
    }
    const auto type = state.find("quant_type");
    if (type == state.end() || *type != "nf4") {
        throw base::Unsupported(fmt::format("{}: quant_type: only nf4 is supported", name));
    }
    requireGroup(state, "blocksize", kNf4Group, name);
    Nf4State out;
    readShape(state, name, out);
    if (!state.contains("nested_blocksize")) {
        return out;
    }
    requireGroup(state, "nested_blocksize", kNf4ScaleGroup, name);
    const auto offset = state.find("nested_offset");
    constexpr double kLargest = std::numeric_limits<float>::max();
    if (offset == state.end() || !offset->is_number() || std::fabs(offset->get<double>()) > kLargest) {
        badState(name, "nested_offset: must be a number");
    }
    out.packedScales = true;
    out.scaleOffset = offset->get<float>();
    return out;
}

std::vector<StoredTensor> nf4StoredTensors(const std::string& name, const Nf4State& state) {
    const std::int64_t count = state.out * state.in;
    const std::int64_t groups = count / kNf4Group;
    const std::int64_t codeScales = (groups + kNf4ScaleGroup - 1) / kNf4ScaleGroup;
    // Files hold one row of all; kernels take rows of the matrix.
    const kernels::Shape data{state.out, state.in / 2};
    const kernels::Shape scaleRows{state.out, state.in / kNf4Group};
    const std::string scales = name + std::string(kernels::packedFormat(kernels::WeightFormat::Nf4).scalesSuffix);
    const auto elements = count / 2 / static_cast<std::int64_t>(kernels::bytesOf(state.storageType, 1));
    std::vector<StoredTensor> out{{kernels::WeightField::Data, name, state.storageType, {elements, 1}, DType::U8, data},
                                  {kernels::WeightField::Scales,
                                   scales,
                                   state.packedScales ? DType::U8 : DType::F32,
                                   {groups},
                                   DType::None,
                                   scaleRows}};
    if (state.packedScales) {
        out.push_back({kernels::WeightField::ScaleScales,
                       name + ".nested_absmax",
                       DType::F32,
                       {codeScales},
                       DType::None,
                       kernels::Shape{codeScales}});
    }
    return out;
}

void checkNf4Map(std::span<const float> map, const std::string& name) {
    requireMap(map, kernels::kNf4Values, name);
}

void checkNf4ScaleMap(std::span<const float> map, const std::string& name) {
    requireMap(map, kernels::nf4ScaleMap(), name);
}

void checkNf4Scales(std::span<const float> scales, const std::function<std::string()>& name, std::uint64_t first) {
    for (std::size_t i = 0; i < scales.size(); ++i) {
        if (!std::isfinite(scales[i])) {
            badState(name(), fmt::format("scale {} is not finite; the file is damaged", first + i));
        }
    }
}

} // namespace vitrine::engine
