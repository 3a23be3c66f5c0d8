// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A row of the table of schemes. Each scheme has a source of its own and gives its row; functions that are null do what
// most schemes need: no side tensors, bytes that are the same in memory, nothing to check.

#include "engine/quant/quantization_fields.h"
#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {

struct SchemeRow {
    StorageScheme scheme = StorageScheme::GptOss;
    std::string_view method; ///< "quant_method" of a quantization_config
    Quantization (*parse)(const QuantizationFields& fields) = nullptr;
    nlohmann::json (*config)(const Quantization& quantization) = nullptr;
    /// A checkpoint that has this tensor may store the weight in this scheme. Null: inspect alone says it.
    std::string (*mark)(const std::string& weight) = nullptr;
    /// What the files say of a weight that has the mark; nothing: it is dense.
    std::optional<WeightPacking> (*inspect)(const WeightPacking& declared, const std::string& weight,
                                            std::span<const std::int64_t> shape, const TensorLookup& files) = nullptr;
    std::vector<StoredTensor> (*tensors)(const WeightPacking& packing, const std::string& weight,
                                         std::span<const std::int64_t> shape) = nullptr;
    void (*toMemory)(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> stored,
                     std::span<std::uint8_t> memory) = nullptr;
    std::vector<std::string> (*sideNames)(const WeightPacking& packing, const std::string& weight) = nullptr;
    std::vector<SideTensor> (*makeSide)(const WeightPacking& packing, const std::string& weight,
                                        std::span<const std::int64_t> shape) = nullptr;
    /// The reverse of toMemory.
    void (*toStored)(const WeightPacking& packing, const StoredTensor& tensor, std::span<const std::uint8_t> memory,
                     std::span<std::uint8_t> stored) = nullptr;
};

const SchemeRow& gptOssScheme();
const SchemeRow& bitsAndBytesScheme();
const SchemeRow& packQuantizedScheme();
const SchemeRow& gptqScheme();
const SchemeRow& awqScheme();
const SchemeRow& fp8Scheme();
const SchemeRow& ggufScheme();

/// Throws Unsupported "NAME: what".
[[noreturn]] void failPacking(const std::string& weight, const std::string& what);

} // namespace vitrine::engine
