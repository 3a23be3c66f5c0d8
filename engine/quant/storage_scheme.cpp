// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/storage_scheme.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/quoted_text.h"
#include "engine/quant/mxfp4.h"
#include "engine/quant/nf4_checkpoint.h"
#include "engine/quant/scheme_row.h"
#include "kernels/core/floats.h"
#include "kernels/formats/mxfp4_format.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;

/// Every scheme has a row here.
std::array<const SchemeRow*, 7> rows() {
    return {&gptOssScheme(), &bitsAndBytesScheme(), &packQuantizedScheme(), &gptqScheme(),
            &awqScheme(),    &fp8Scheme(),          &ggufScheme()};
}

const SchemeRow& rowOf(StorageScheme scheme) {
    const auto all = rows();
    const auto found = std::ranges::find(all, scheme, &SchemeRow::scheme);
    if (found == all.end()) {
        throw base::Internal("a packed weight has no storage scheme");
    }
    return **found;
}

/// The mean square of uniform codes, before the scale.
float meanSquare(WeightFormat format) {
    switch (format) {
    case WeightFormat::Mxfp4: // of the 16 values of E2M1
        return (0.25F + 1 + 2.25F + 4 + 9 + 16 + 36) / 8;
    case WeightFormat::Int8:
        return 256.0F * 256.0F / 12;
    case WeightFormat::Fp8: // of bytes whose lowest bit is clear, about
        return 10750;
    default:
        return 16.0F * 16.0F / 12;
    }
}

void checkFinite(DType dtype, std::span<const std::uint8_t> bytes, const std::function<std::string()>& name,
                 std::uint64_t first) {
    const std::uint64_t size = kernels::bytesOf(dtype, 1);
    const auto count = static_cast<std::int64_t>(bytes.size() / size);
    std::vector<float> scales(static_cast<std::size_t>(count));
    kernels::loadFloats(dtype, bytes.data(), 0, count, scales.data());
    checkNf4Scales(scales, name, first / size);
}

void checkNumbers(std::span<const std::uint8_t> bytes, const std::function<std::string()>& name, std::uint64_t first) {
    const auto found = std::ranges::find_if(bytes, [](std::uint8_t byte) { return (byte & 0x7FU) == 0x7FU; });
    if (found != bytes.end()) {
        throw base::BadInput(fmt::format("{}: element {} is \"not a number\"; the file is damaged", name(),
                                         first + static_cast<std::uint64_t>(found - bytes.begin())));
    }
}

} // namespace

Quantization parseQuantization(const json& quantization, const std::string& file, const std::string& path) {
    const QuantizationFields fields(quantization, file, path);
    // Older configs of bitsandbytes name no method.
    const bool sized = quantization.contains("load_in_4bit") || quantization.contains("load_in_8bit");
    const std::string method = fields.text("quant_method", sized ? "bitsandbytes" : "");
    const auto all = rows();
    const auto found = std::ranges::find(all, method, &SchemeRow::method);
    if (found == all.end()) {
        fields.unsupported("quant_method",
                           fmt::format("{} is not supported; {} are", base::quotedText(method), quantizationMethods()));
    }
    Quantization out = (*found)->parse(fields);
    out.unread = fields.unread();
    return out;
}

std::string impliedMethod(const json& quantization) {
    const bool awq = std::ranges::any_of(std::array{"w_bit", "q_group_size", "zero_point"},
                                         [&](const char* field) { return quantization.contains(field); });
    return awq ? "awq" : "gptq";
}

json quantizationConfig(const Quantization& quantization) {
    return rowOf(quantization.packing.scheme).config(quantization);
}

std::optional<WeightPacking> packingInFile(const std::string& name, std::span<const std::int64_t> shape,
                                           const Quantization* declared, const TensorLookup& files) {
    // Stacks of gpt_oss say by their names alone that they are packed.
    const WeightPacking packing = declared == nullptr ? stackPacking() : declared->packing;
    const SchemeRow& row = rowOf(packing.scheme);
    if (row.mark != nullptr && !files.has(row.mark(name))) {
        return std::nullopt;
    }
    return row.inspect == nullptr ? packing : row.inspect(packing, name, shape, files);
}

std::vector<StoredTensor> storedTensors(const WeightPacking& packing, const std::string& name,
                                        std::span<const std::int64_t> shape) {
    return rowOf(packing.scheme).tensors(packing, name, shape);
}

void toMemory(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> stored,
              std::span<std::uint8_t> memory) {
    rowOf(packing.scheme).toMemory(packing, tensor, stored, memory);
}

void toStored(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> memory,
              std::span<std::uint8_t> stored) {
    rowOf(packing.scheme).toStored(packing, tensor, memory, stored);
}

std::vector<std::string> sideTensorNames(const WeightPacking& packing, const std::string& weight) {
    const SchemeRow& row = rowOf(packing.scheme);
    return row.sideNames == nullptr ? std::vector<std::string>{} : row.sideNames(packing, weight);
}

std::vector<SideTensor> makeSideTensors(const WeightPacking& packing, const std::string& weight,
                                        std::span<const std::int64_t> shape) {
    const SchemeRow& row = rowOf(packing.scheme);
    return row.makeSide == nullptr ? std::vector<SideTensor>{} : row.makeSide(packing, weight, shape);
}

RandomFill randomFill(const WeightPacking& packing, WeightField field, std::int64_t in) {
    const float wanted = 1 / std::sqrt(static_cast<float>(in));
    const float scale = wanted / std::sqrt(meanSquare(packing.format));
    if (field == WeightField::Zeros) {
        return {static_cast<float>(packing.format == WeightFormat::Int8 ? 128 : 8), 0};
    }
    if (packing.format == WeightFormat::Fp8 && field == WeightField::Data) {
        return {1, 1}; // what is not a number has all bits but the sign
    }
    if (field != WeightField::Scales || packing.format == WeightFormat::Nf4) {
        return {};
    }
    return packing.format == WeightFormat::Mxfp4 ? RandomFill{127 + std::round(std::log2(scale)), 0}
                                                 : RandomFill{scale, 0};
}

void checkStoredBytes(const WeightPacking& packing, WeightField field, DType dtype, std::span<const std::uint8_t> bytes,
                      const std::function<std::string()>& name, std::uint64_t first) {
    if (packing.format == WeightFormat::Dense) {
        return;
    }
    if (packing.format == WeightFormat::Mxfp4 && field == WeightField::Scales) {
        checkMxfp4Scales(bytes, name(), first);
    } else if (packing.format == WeightFormat::Fp8 && field == WeightField::Data) {
        checkNumbers(bytes, name, first);
    } else if (field == WeightField::Data && packing.format == WeightFormat::Nf4) {
        return; // every byte is two elements, whatever type the file gives it
    } else if (kernels::isFloat(dtype)) {
        checkFinite(dtype, bytes, name, first);
    }
}

void checkStoredOrder(const WeightPacking& packing, WeightField field, std::int64_t in,
                      std::span<const std::uint8_t> bytes, const std::function<std::string()>& name,
                      std::uint64_t first) {
    if (field != WeightField::Order) {
        return;
    }
    const std::int64_t groups = (in + groupOf(packing, in) - 1) / groupOf(packing, in);
    std::int32_t group = 0;
    for (std::size_t at = 0; at + sizeof group <= bytes.size(); at += sizeof group) {
        std::memcpy(&group, bytes.data() + at, sizeof group);
        if (group < 0 || group >= groups) {
            throw base::BadInput(fmt::format("{}: input {} is in group {}, and there are {} groups; the file is "
                                             "damaged",
                                             name(), (first + at) / sizeof group, group, groups));
        }
    }
}

std::string quantizationMethods() {
    std::string out;
    for (const SchemeRow* row : rows()) {
        out += out.empty() ? "" : ", ";
        out += row->method;
    }
    return out;
}

} // namespace vitrine::engine
