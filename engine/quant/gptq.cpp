// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// GPTQ: NAME.qweight (in / 8, out), NAME.qzeros (groups, out / 8), NAME.scales (groups, out) and NAME.g_idx (in). In
// version 1 files hold every zero less one; "gptq_v2" holds it as it is.

#include <algorithm>
#include <cstring>
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

int gptqBits(const WeightPacking& packing) {
    return packing.format == WeightFormat::Int8 ? 8 : 4;
}

std::string gptqName(const std::string& weight, std::string_view ending) {
    return std::string(moduleOf(weight)) + std::string(ending);
}

Quantization parseGptq(const QuantizationFields& fields) {
    Quantization out;
    WeightPacking& packing = out.packing;
    packing.scheme = StorageScheme::Gptq;
    const std::int64_t bits = fields.integer("bits", 4);
    if (bits != 4 && bits != 8) {
        fields.unsupported("bits", fmt::format("{} is not supported; 4 and 8 are", bits));
    }
    packing.format = bits == 4 ? WeightFormat::Int4 : WeightFormat::Int8;
    packing.group = fields.groupSize("group_size", 128);
    packing.zeros = true; // files have them also where all are the same
    packing.ordered = fields.flag("desc_act", false);
    const char* format = fields.oneOf("format", "checkpoint_format"); // the second is the older name
    const std::string version = fields.lowerText(format, "gptq");
    if (version != "gptq" && version != "gptq_v2") {
        fields.unsupported(format, fmt::format("{} is not supported; gptq and gptq_v2 are", base::quotedText(version)));
    }
    packing.zerosMinusOne = version == "gptq";
    out.symmetric = packing.middleZeros = fields.flag("sym", true);
    out.ignored = fields.texts("modules_to_not_convert");
    if (!fields.flag("lm_head", false)) {
        out.ignored.emplace_back("lm_head");
    }
    readGptqRules(fields, out);
    return out;
}

json gptqConfig(const Quantization& quantization) {
    const WeightPacking& packing = quantization.packing;
    return {{"quant_method", "gptq"},
            {"bits", gptqBits(packing)},
            {"group_size", packing.group},
            {"desc_act", packing.ordered},
            {"sym", quantization.symmetric},
            {"lm_head", false},
            {"format", packing.zerosMinusOne ? "gptq" : "gptq_v2"},
            {"checkpoint_format", packing.zerosMinusOne ? "gptq" : "gptq_v2"},
            {"modules_to_not_convert", quantization.ignored}};
}

/// The group of each input when neighbours share one.
std::vector<std::int32_t> plainGroups(const WeightPacking& packing, std::int64_t in) {
    std::vector<std::int32_t> groups(static_cast<std::size_t>(in));
    for (std::int64_t i = 0; i < in; ++i) {
        groups[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i / groupOf(packing, in));
    }
    return groups;
}

std::string gptqMark(const std::string& weight) {
    return gptqName(weight, ".qweight");
}

/// Some programs take the middle code for every zero where `sym` is true, others the zeros of the file. Both are the
/// same in files that keep their word. A sample shows those that do not: their zeros count here.
void checkMiddleZeros(const WeightPacking& packing, const std::string& weight, const TensorLookup& files) {
    constexpr std::uint64_t kSample = 4096;
    const std::string name = gptqName(weight, ".qzeros");
    if (!packing.middleZeros || !files.has(name)) {
        return;
    }
    const unsigned bits = static_cast<unsigned>(gptqBits(packing));
    const std::uint8_t middle = static_cast<std::uint8_t>((1U << (bits - 1)) - (packing.zerosMinusOne ? 1 : 0));
    const std::uint8_t expected = bits == 4 ? static_cast<std::uint8_t>(middle << 4 | middle) : middle;
    const SideTensor zeros = files.begin(name, kSample);
    if (std::ranges::any_of(zeros.bytes, [&](std::uint8_t byte) { return byte != expected; })) {
        files.remark("quantization_config.sym: is true, but the files hold zeros that are not the middle code; the "
                     "zeros of the files are used");
    }
}

/// Files have g_idx whatever desc_act says. Where it is not the plain order of the inputs, it counts.
std::optional<WeightPacking> inspectGptq(const WeightPacking& declared, const std::string& weight,
                                         std::span<const std::int64_t> shape, const TensorLookup& files) {
    WeightPacking packing = declared;
    checkMiddleZeros(packing, weight, files);
    const std::string name = gptqName(weight, ".g_idx");
    if (packing.ordered || !files.has(name)) {
        return packing;
    }
    const SideTensor groups = files.read(name);
    std::vector<std::int32_t> found(groups.bytes.size() / sizeof(std::int32_t));
    if (!found.empty()) { // an empty tensor has no address
        std::memcpy(found.data(), groups.bytes.data(), found.size() * sizeof(std::int32_t));
    }
    packing.ordered = found != plainGroups(packing, shape[1]);
    return packing;
}

std::vector<StoredTensor> gptqTensors(const WeightPacking& packing, const std::string& weight,
                                      std::span<const std::int64_t> shape) {
    const std::int64_t out = shape[0];
    const std::int64_t in = shape[1];
    const std::int64_t perWord = 32 / gptqBits(packing);
    const std::int64_t group = groupOf(packing, in);
    if (in % perWord != 0 || out % perWord != 0) {
        failPacking(weight,
                    fmt::format("GPTQ needs axes that are multiples of {}, and they are {} and {}", perWord, out, in));
    }
    const std::int64_t groups = (in + group - 1) / group;
    const kernels::Shape grouped{out, groups};
    std::vector<StoredTensor> tensors{
        {WeightField::Data,
         gptqMark(weight),
         DType::I32,
         {in / perWord, out},
         DType::U8,
         kernels::Shape{out, in * gptqBits(packing) / 8},
         true},
        {WeightField::Zeros,
         gptqName(weight, ".qzeros"),
         DType::I32,
         {groups, out / perWord},
         DType::U8,
         grouped,
         true},
        {WeightField::Scales, gptqName(weight, ".scales"), DType::BF16, {groups, out}, DType::None, grouped, true}};
    if (packing.ordered) {
        tensors.push_back(
            {WeightField::Order, gptqName(weight, ".g_idx"), DType::I32, {in}, DType::I32, kernels::Shape{in}});
    }
    return tensors;
}

CodeShape gptqCodes(const WeightPacking& packing, const StoredTensor& tensor) {
    const int bits = gptqBits(packing);
    return {tensor.shape[1], tensor.shape[0] * 32 / bits, bits};
}

ZeroLayout gptqZeros(const WeightPacking& packing, const StoredTensor& tensor) {
    ZeroLayout layout{tensor.memoryShape[0], tensor.memoryShape[1], gptqBits(packing)};
    layout.added = packing.zerosMinusOne ? 1 : 0;
    return layout;
}

void gptqToMemory(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> stored,
                  std::span<std::uint8_t> memory) {
    if (tensor.field == WeightField::Data) {
        rowsFromInputWords(gptqCodes(packing, tensor), stored, memory);
    } else if (tensor.field == WeightField::Zeros) {
        zerosFromWords(gptqZeros(packing, tensor), stored, memory);
    } else {
        transposeScales(tensor.shape[0], tensor.shape[1], stored, memory);
    }
}

void gptqToStored(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> memory,
                  std::span<std::uint8_t> stored) {
    if (tensor.field == WeightField::Data) {
        inputWordsFromRows(gptqCodes(packing, tensor), memory, stored);
    } else if (tensor.field == WeightField::Zeros) {
        wordsFromZeros(gptqZeros(packing, tensor), memory, stored);
    } else {
        transposeScales(tensor.shape[1], tensor.shape[0], memory, stored);
    }
}

/// Files have it also where no order was made.
std::vector<std::string> gptqSideNames(const WeightPacking& packing, const std::string& weight) {
    return packing.ordered ? std::vector<std::string>{} : std::vector<std::string>{gptqName(weight, ".g_idx")};
}

std::vector<SideTensor> gptqMakeSide(const WeightPacking& packing, const std::string& weight,
                                     std::span<const std::int64_t> shape) {
    if (packing.ordered) {
        return {};
    }
    const std::vector<std::int32_t> groups = plainGroups(packing, shape[1]);
    const auto bytes = std::as_bytes(std::span(groups));
    const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return {{gptqName(weight, ".g_idx"), DType::I32, std::vector<std::uint8_t>(begin, begin + bytes.size())}};
}

} // namespace

const SchemeRow& gptqScheme() {
    static constexpr SchemeRow kRow{StorageScheme::Gptq, "gptq",      parseGptq,    gptqConfig,    gptqMark,
                                    inspectGptq,         gptqTensors, gptqToMemory, gptqSideNames, gptqMakeSide,
                                    gptqToStored};
    return kRow;
}

} // namespace vitrine::engine
