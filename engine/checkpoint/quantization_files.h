// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files beside config.json that say how weights are packed: what quantizers wrote before quantization_config became
// part of config.json.

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine::engine {

struct QuantizationFile {
    std::shared_ptr<const nlohmann::json> object; ///< with a quant_method, whether the file has one or not
    std::string file;                             ///< its path, for messages
};

/// quantize_config.json or quant_config.json of the folder, nothing when neither is there. Throws Unsupported for files
/// of other programs when `config`, the content of config.json, says nothing of packed weights: they would be taken for
/// dense ones. Where it does, such files are named in a warning.
std::optional<QuantizationFile> findQuantizationFile(const std::filesystem::path& folder, const nlohmann::json& config);

/// Whether a file of this name says how the weights beside it are packed. A model that is made of them is packed
/// otherwise.
bool isQuantizationFile(std::string_view name);

} // namespace vitrine::engine
