// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/quantization_files.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/small_files.h"
#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Names that are read.
constexpr std::array<std::string_view, 2> kReadFiles{"quantize_config.json", "quant_config.json"};

/// Names that are known and not read, and who writes them.
constexpr std::array kForeignFiles{std::pair{std::string_view("hf_quant_config.json"), "ModelOpt"},
                                   std::pair{std::string_view("quanto_qmap.json"), "Quanto"},
                                   std::pair{std::string_view("quantization_map.json"), "Quanto"},
                                   std::pair{std::string_view("quantization_config.json"), "other programs"}};

bool saysQuantization(const json& config) {
    return config.is_object() && (config.value("quantization_config", json()).is_object() ||
                                  config.value("compression_config", json()).is_object());
}

/// ModelOpt writes its file for a cache in FP8 alone, too.
bool packsWeights(const json& object) {
    const json inner = object.is_object() ? object.value("quantization", json()) : json();
    return !inner.is_object() || !inner.contains("quant_algo") || !inner["quant_algo"].is_null();
}

} // namespace

std::optional<QuantizationFile> findQuantizationFile(const fs::path& folder, const json& config) {
    std::optional<QuantizationFile> found;
    for (const std::string_view name : kReadFiles) {
        const fs::path path = folder / name;
        if (found || !hasFile(path)) {
            continue;
        }
        json object = parseSmallFile(path);
        if (object.is_object() && object.value("quant_method", json()).is_null()) {
            object["quant_method"] = impliedMethod(object);
        }
        found = QuantizationFile{std::make_shared<const json>(std::move(object)), path.string()};
    }
    for (const auto& [name, writer] : kForeignFiles) {
        const fs::path path = folder / name;
        if (!hasFile(path)) {
            continue;
        }
        if (!found && !saysQuantization(config) && packsWeights(parseSmallFile(path))) {
            throw base::Unsupported(fmt::format("{}: weights packed by {} are not supported; use a model whose "
                                                "config.json has a quantization_config",
                                                path.string(), writer));
        }
        base::logWarning(fmt::format("{}: is a file of {} and is not read", path.string(), writer));
    }
    return found;
}

bool isQuantizationFile(std::string_view name) {
    return std::ranges::find(kReadFiles, name) != kReadFiles.end() ||
           std::ranges::any_of(kForeignFiles, [&](const auto& row) { return row.first == name; });
}

} // namespace vitrine::engine
