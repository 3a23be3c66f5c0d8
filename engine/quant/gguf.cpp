// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/gguf.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/quant/scheme_row.h"
#include "kernels/core/floats.h"
#include "kernels/formats/k_quant_format.h"
#include "kernels/formats/mxfp4_format.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;

constexpr std::int64_t kGgufGroup = 32; ///< elements of a block of Q4_0, Q5_0, Q8_0 and MXFP4
constexpr std::uint32_t kGgufQ40 = 2, kGgufQ50 = 6, kGgufQ80 = 8;

// Numbers and sizes of ggml: those of types that are not read are here too, because errors name them.
constexpr std::array<GgufType, 34> kTypes = {{
    {0, "F32", 1, 4, DType::F32},
    {1, "F16", 1, 2, DType::F16},
    {kGgufQ40, "Q4_0", kGgufGroup, 18, DType::None, WeightFormat::Int4},
    {3, "Q4_1", kernels::kQ1Elements, kernels::kQ41Bytes, DType::None, WeightFormat::Q41},
    {kGgufQ50, "Q5_0", kGgufGroup, 22, DType::None, WeightFormat::Int8},
    {7, "Q5_1", kernels::kQ1Elements, kernels::kQ51Bytes, DType::None, WeightFormat::Q51},
    {kGgufQ80, "Q8_0", kGgufGroup, 34, DType::None, WeightFormat::Int8},
    {9, "Q8_1", 32, 40},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", kernels::kKQuantElements, kernels::kQ4KBytes, DType::None, WeightFormat::Q4K},
    {13, "Q5_K", kernels::kKQuantElements, kernels::kQ5KBytes, DType::None, WeightFormat::Q5K},
    {14, "Q6_K", kernels::kKQuantElements, kernels::kQ6KBytes, DType::None, WeightFormat::Q6K},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2, DType::BF16},
    {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
    {39, "MXFP4", kGgufGroup, 17, DType::None, WeightFormat::Mxfp4},
    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
}};

std::string dataName(const WeightPacking& packing, const std::string& weight) {
    return fmt::format("{}.{}", weight, kernels::packedFormat(packing.format).name);
}

/// Codes of a block of 32 elements of four bits: byte i of the file has elements i and i + 16, byte i in memory has
/// elements 2 i and 2 i + 1.
void reorderNibbles(const std::uint8_t* codes, std::uint8_t* out) {
    for (std::int64_t i = 0; i < kGgufGroup / 2; i += 2) {
        out[i / 2] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + 1] & 15) << 4);
        out[i / 2 + kGgufGroup / 4] = static_cast<std::uint8_t>(codes[i] >> 4 | (codes[i + 1] & 240));
    }
}

/// The block's 32 bits are the fifth of each code, and its nibbles are the rest, of elements i and i + 16 in byte i. In
/// memory they are codes of eight bits: 128 stands for 0, as 16 does in the file.
void widenFiveBits(const std::uint8_t* bits, std::uint8_t* out) {
    const std::uint8_t* const nibbles = bits + kGgufGroup / 8;
    for (std::int64_t i = 0; i < kGgufGroup; ++i) {
        const int low = i < kGgufGroup / 2 ? nibbles[i] & 15 : nibbles[i - kGgufGroup / 2] >> 4;
        const int fifth = bits[i / 8] >> (i % 8) & 1;
        out[i] = static_cast<std::uint8_t>((low | fifth << 4) + 128 - 16);
    }
}

/// Bytes before the codes of a block: its scale.
std::int64_t scaleBytes(const GgufType& type) {
    return type.format == WeightFormat::Mxfp4 ? 1 : 2;
}

/// Whether kernels read the blocks themselves.
bool keepsBlocks(const GgufType& type) {
    constexpr std::array kKept = {WeightFormat::Q41, WeightFormat::Q51, WeightFormat::Q4K, WeightFormat::Q5K,
                                  WeightFormat::Q6K};
    return std::ranges::find(kKept, type.format) != kKept.end();
}

bool isNumber(const std::uint8_t* half) {
    return (half[1] & 0x7C) != 0x7C;
}

Quantization refuseConfig(const QuantizationFields& fields) {
    fields.unsupported("quant_method", "gguf is that of GGUF files; give the file itself");
}

json noConfig(const Quantization&) {
    throw base::Unsupported(
        "the weights of a GGUF file cannot be written to a folder of safetensors files as they are; "
        "choose dequantized weights");
}

/// The type says what memory holds; the names of the tensors say the type.
std::optional<WeightPacking> inspectGguf(const WeightPacking&, const std::string& weight, std::span<const std::int64_t>,
                                         const TensorLookup& files) {
    for (const GgufType& type : kTypes) {
        if (type.format != WeightFormat::Dense && files.has(dataName(ggufPacking(type), weight))) {
            return ggufPacking(type);
        }
    }
    return std::nullopt;
}

std::vector<StoredTensor> ggufTensors(const WeightPacking& packing, const std::string& weight,
                                      std::span<const std::int64_t> shape) {
    const auto* const type = std::ranges::find(kTypes, packing.format, &GgufType::format);
    if (shape.back() % type->elements != 0) {
        failPacking(weight, fmt::format("{} needs an input axis that is a multiple of {}, and it is {}",
                                        kernels::packedFormat(packing.format).title, type->elements, shape.back()));
    }
    std::vector<std::int64_t> data(shape.begin(), shape.end());
    std::vector<std::int64_t> scales = data;
    scales.back() /= type->elements;
    const std::string name = dataName(packing, weight);
    if (keepsBlocks(*type)) {
        data.back() = data.back() / type->elements * type->bytes;
        return {{WeightField::Data, name, DType::U8, data, DType::U8, kernels::Shape(data)}};
    }
    if (packing.format == WeightFormat::Mxfp4) {
        data.back() = scales.back();
        data.push_back(kGgufGroup / 2);
    } else if (packing.format == WeightFormat::Int4) {
        data.back() /= 2;
    }
    const DType scaleType = packing.format == WeightFormat::Mxfp4 ? DType::U8 : DType::F16;
    return {{WeightField::Data, name, DType::U8, data, DType::U8, kernels::Shape(data)},
            {WeightField::Scales, name + "_scales", scaleType, scales, scaleType, kernels::Shape(scales)}};
}

} // namespace

const SchemeRow& ggufScheme() {
    static constexpr SchemeRow kRow{StorageScheme::Gguf, "gguf",     refuseConfig, noConfig, nullptr,
                                    inspectGguf,         ggufTensors};
    return kRow;
}

const GgufType* ggufType(std::uint32_t number) {
    const auto* const found = std::ranges::find(kTypes, number, &GgufType::number);
    return found == kTypes.end() ? nullptr : found;
}

std::string ggufTypeNames() {
    std::string out;
    for (const GgufType& type : kTypes) {
        if (type.supported()) {
            out += out.empty() ? "" : ", ";
            out += type.name;
        }
    }
    return out;
}

Quantization ggufQuantization() {
    Quantization out;
    out.packing.scheme = StorageScheme::Gguf;
    return out;
}

WeightPacking ggufPacking(const GgufType& type) {
    WeightPacking packing;
    packing.scheme = StorageScheme::Gguf;
    packing.format = type.format;
    const bool integers = type.format == WeightFormat::Int4 || type.format == WeightFormat::Int8;
    packing.group = integers ? kGgufGroup : 0;
    return packing;
}

void unpackGguf(const GgufType& type, WeightField field, std::span<const std::uint8_t> blocks,
                std::span<std::uint8_t> out) {
    if (keepsBlocks(type)) {
        std::ranges::copy(blocks, out.begin());
        return;
    }
    const std::int64_t count = std::ssize(blocks) / type.bytes;
    const std::int64_t scale = scaleBytes(type);
    const std::int64_t step = std::ssize(out) / std::max<std::int64_t>(count, 1);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint8_t* const block = blocks.data() + i * type.bytes;
        std::uint8_t* const to = out.data() + i * step;
        if (field == WeightField::Scales) {
            std::copy_n(block, scale, to);
        } else if (type.number == kGgufQ50) {
            widenFiveBits(block + scale, to);
        } else if (type.format == WeightFormat::Int8) {
            // Signed in the file; in memory 128 stands for 0.
            std::transform(block + scale, block + type.bytes, to,
                           [](std::uint8_t code) { return static_cast<std::uint8_t>(code ^ 128); });
        } else {
            reorderNibbles(block + scale, to);
        }
    }
}

void expandGguf(const GgufType& type, std::span<const std::uint8_t> blocks, float* out) {
    const std::int64_t count = std::ssize(blocks) / type.bytes;
    if (type.floats != DType::None) {
        kernels::loadFloats(type.floats, blocks.data(), 0, count, out);
        return;
    }
    const kernels::PackedFormat& format = kernels::packedFormat(type.format);
    kernels::PackedMatrix row;
    std::vector<std::uint8_t> data;
    std::vector<std::uint8_t> scales;
    row.data = blocks.data();
    if (!keepsBlocks(type)) {
        const std::int64_t codes = type.format == WeightFormat::Int8 ? type.elements : type.elements / 2;
        data.resize(static_cast<std::size_t>(count * codes));
        scales.resize(static_cast<std::size_t>(count * scaleBytes(type)));
        unpackGguf(type, WeightField::Data, blocks, data);
        unpackGguf(type, WeightField::Scales, blocks, scales);
        row.data = data.data();
        row.scales = scales.data();
        row.scaleType = type.format == WeightFormat::Mxfp4 ? DType::U8 : DType::F16;
    }
    row.format = &format;
    row.group = type.elements;
    row.groups = count;
    format.expand(row, 0, 0, count * type.elements, out);
}

std::optional<std::int64_t> damagedGgufBlock(const GgufType& type, std::span<const std::uint8_t> blocks) {
    // Where a block has its halves, or its one byte of an exponent.
    const bool two = keepsBlocks(type) && type.format != WeightFormat::Q6K; // a scale and a minimum
    const std::int64_t scale = type.format == WeightFormat::Q6K ? type.bytes - 2 : 0;
    const auto bad = [&](const std::uint8_t* block) {
        return type.format == WeightFormat::Mxfp4 ? block[0] == 255
                                                  : !isNumber(block + scale) || (two && !isNumber(block + 2));
    };
    if (type.format == WeightFormat::Dense) {
        return std::nullopt;
    }
    for (std::int64_t i = 0; i < std::ssize(blocks) / type.bytes; ++i) {
        if (bad(blocks.data() + i * type.bytes)) {
            return i;
        }
    }
    return std::nullopt;
}

} // namespace vitrine::engine
