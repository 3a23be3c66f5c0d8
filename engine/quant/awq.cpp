// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// AWQ, version "gemm": NAME.qweight (in, out / 8) with the outputs of a word in the order 0 2 4 6 1 3 5 7, NAME.qzeros
// (groups, out / 8) in the same order, NAME.scales (groups, out).

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/quoted_text.h"
#include "engine/quant/gptq_rules.h"
#include "engine/quant/integer_codes.h"
#include "engine/quant/scheme_row.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;
using kernels::WeightFormat;
using nlohmann::json;

std::string awqName(const std::string& weight, std::string_view ending) {
    return std::string(moduleOf(weight)) + std::string(ending);
}

/// AutoAWQ's own names are w_bit, q_group_size and version; transformers has bits, group_size and format.
Quantization parseAwq(const QuantizationFields& fields) {
    const char* bitsName = fields.oneOf("bits", "w_bit");
    if (const std::int64_t bits = fields.integer(bitsName, 4); bits != 4) {
        fields.unsupported(bitsName, fmt::format("{} is not supported; 4 is", bits));
    }
    const char* versionName = fields.oneOf("version", "format");
    if (const std::string version = fields.lowerText(versionName, "gemm"); version != "gemm") {
        fields.unsupported(versionName, fmt::format("{} is not supported; gemm is", base::quotedText(version)));
    }
    if (fields.lowerText("backend", "auto") == "llm-awq") {
        fields.unsupported("backend", "the layout of llm-awq is not supported");
    }
    if (fields.flag("desc_act", false)) {
        fields.unsupported("desc_act", "an order of inputs is not supported for awq");
    }
    Quantization out;
    out.packing.scheme = StorageScheme::Awq;
    out.packing.format = WeightFormat::Int4;
    out.packing.group = fields.groupSize(fields.oneOf("group_size", "q_group_size"), 128);
    out.packing.zeros = fields.flag("zero_point", true);
    fields.harmless({"sym"}); // of GPTQ; zero_point says it here
    out.ignored = fields.texts("modules_to_not_convert");
    if (!fields.flag("lm_head", false)) {
        out.ignored.emplace_back("lm_head");
    }
    readGptqRules(fields, out);
    return out;
}

json awqConfig(const Quantization& quantization) {
    return {{"quant_method", "awq"},
            {"bits", 4},
            {"group_size", quantization.packing.group},
            {"zero_point", quantization.packing.zeros},
            {"version", "gemm"},
            {"modules_to_not_convert", quantization.ignored}};
}

std::string awqMark(const std::string& weight) {
    return awqName(weight, ".qweight");
}

/// Zeros that the files have are used, whatever the config says: kernels of other programs take them too.
std::optional<WeightPacking> inspectAwq(const WeightPacking& declared, const std::string& weight,
                                        std::span<const std::int64_t>, const TensorLookup& files) {
    WeightPacking packing = declared;
    if (!packing.zeros && files.has(awqName(weight, ".qzeros"))) {
        packing.zeros = true;
        files.remark("quantization_config.zero_point: is false, but the files hold zeros; they are used");
    }
    return packing;
}

std::vector<StoredTensor> awqTensors(const WeightPacking& packing, const std::string& weight,
                                     std::span<const std::int64_t> shape) {
    const std::int64_t out = shape[0];
    const std::int64_t in = shape[1];
    const std::int64_t group = groupOf(packing, in);
    if (out % 8 != 0 || in % 2 != 0) {
        failPacking(weight, fmt::format("AWQ needs outputs that are a multiple of 8 and an even number of inputs, and "
                                        "there are {} and {}",
                                        out, in));
    }
    const std::int64_t groups = (in + group - 1) / group;
    const kernels::Shape grouped{out, groups};
    std::vector<StoredTensor> tensors{
        {WeightField::Data, awqMark(weight), DType::I32, {in, out / 8}, DType::U8, kernels::Shape{out, in / 2}, true}};
    if (packing.zeros) {
        tensors.push_back(
            {WeightField::Zeros, awqName(weight, ".qzeros"), DType::I32, {groups, out / 8}, DType::U8, grouped, true});
    }
    tensors.push_back(
        {WeightField::Scales, awqName(weight, ".scales"), DType::BF16, {groups, out}, DType::None, grouped, true});
    return tensors;
}

CodeShape awqCodes(const StoredTensor& tensor) {
    return {tensor.shape[1] * 8, tensor.shape[0], 4};
}

ZeroLayout awqZeros(const StoredTensor& tensor) {
    ZeroLayout layout{tensor.memoryShape[0], tensor.memoryShape[1], 4};
    layout.order = kAwqOrder;
    return layout;
}

void awqToMemory(const WeightPacking&, const StoredTensor& tensor, std::span<const std::uint8_t> stored,
                 std::span<std::uint8_t> memory) {
    if (tensor.field == WeightField::Data) {
        rowsFromOutputWords(awqCodes(tensor), stored, memory);
    } else if (tensor.field == WeightField::Zeros) {
        zerosFromWords(awqZeros(tensor), stored, memory);
    } else {
        transposeScales(tensor.shape[0], tensor.shape[1], stored, memory);
    }
}

void awqToStored(const WeightPacking&, const StoredTensor& tensor, std::span<const std::uint8_t> memory,
                 std::span<std::uint8_t> stored) {
    if (tensor.field == WeightField::Data) {
        outputWordsFromRows(awqCodes(tensor), memory, stored);
    } else if (tensor.field == WeightField::Zeros) {
        wordsFromZeros(awqZeros(tensor), memory, stored);
    } else {
        transposeScales(tensor.shape[1], tensor.shape[0], memory, stored);
    }
}

} // namespace

const SchemeRow& awqScheme() {
    static constexpr SchemeRow kRow{StorageScheme::Awq, "awq",       parseAwq, awqConfig, awqMark,    inspectAwq,
                                    awqTensors,         awqToMemory, nullptr,  nullptr,   awqToStored};
    return kRow;
}

} // namespace vitrine::engine
