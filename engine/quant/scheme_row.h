// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A row of the table of schemes. Each scheme has a source of its own and gives its row; functions that are null do what
// most schemes need: no side tensors, bytes that are the same in memory, nothing to check.

#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {

struct SchemeRow {
    StorageScheme scheme = StorageScheme::GptOss;
    std::string_view method; ///< "quant_method" of a quantization_config
    Quantization (*parse)(const nlohmann::json& quantization, const std::string& file) = nullptr;
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

/// Fields of a quantization_config. All throw BadInput "FILE: quantization_config.FIELD: what", and Unsupported for
/// values that are right but not known.
class QuantizationFields {
public:
    /// `path` is where the object is in the config: "quantization_config.".
    QuantizationFields(const nlohmann::json& object, std::string file, std::string path = "quantization_config.");

    [[noreturn]] void bad(std::string_view field, const std::string& what) const;
    [[noreturn]] void unsupported(std::string_view field, const std::string& what) const;
    bool flag(const char* field, bool missing) const;
    std::int64_t integer(const char* field, std::int64_t missing) const;
    std::string text(const char* field, const std::string& missing) const;
    std::vector<std::string> texts(const char* field) const; ///< empty when missing or null
    /// Unsupported unless the field, or what it is when it is missing, is this text.
    void requireText(const char* field, const std::string& missing, std::string_view text) const;
    /// 32, 64, 128, ... or -1 for whole rows.
    std::int64_t groupSize(const char* field, std::int64_t missing) const;
    const nlohmann::json* find(const char* field) const; ///< null when missing or null
    const std::string& file() const { return file_; }

private:
    const nlohmann::json& object_;
    std::string file_;
    std::string path_;
};

/// Throws Unsupported "NAME: what".
[[noreturn]] void failPacking(const std::string& weight, const std::string& what);

} // namespace vitrine::engine
