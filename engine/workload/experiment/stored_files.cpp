// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/stored_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {
namespace {

using StoredJson = nlohmann::json;
namespace files = std::filesystem;

constexpr const char* kModelKey = "model";

bool isThere(const files::path& path) {
    std::error_code error;
    return files::exists(path, error);
}

bool canBeAName(const std::string& name) {
    return !name.empty() && name.find('\0') == std::string::npos;
}

/// The name from the root on where the file lies in one of the places.
std::optional<std::string> foundName(const std::string& name, const StoredPlaces& places) {
    if (!canBeAName(name) || files::path(name).is_absolute()) {
        return std::nullopt;
    }
    for (const std::string& folder : {places.workingFolder, places.sessionFolder}) {
        const files::path path = (files::path(folder) / name).lexically_normal();
        if (!folder.empty() && isThere(path)) {
            return path.string();
        }
    }
    return std::nullopt;
}

bool isWritten(const Workload* workload, std::string_view key) {
    return workload != nullptr &&
           std::ranges::find(workload->outputs, key, &WorkloadOutput::key) != workload->outputs.end();
}

void findIn(StoredJson& value, const StoredPlaces& places) {
    if (value.is_string()) {
        if (const auto found = foundName(value.get<std::string>(), places)) {
            value = *found;
        }
    } else if (value.is_array()) {
        for (StoredJson& element : value) {
            findIn(element, places);
        }
    }
}

/// A model may also be a synthetic one, or lie in the cache of Hugging Face, whose names look like folders.
bool isMissing(const std::string& model) {
    constexpr std::string_view kSynthetic = "synthetic:";
    if (!canBeAName(model) || model.starts_with(kSynthetic) || isThere(model)) {
        return false;
    }
    try {
        modelFolder(model);
        return false;
    } catch (const base::Error&) {
        return true;
    }
}

} // namespace

StoredFiles findStoredFiles(const std::string& experiment, const StoredPlaces& places) {
    StoredFiles out{experiment, {}};
    StoredJson spec = StoredJson::parse(experiment, nullptr, false);
    if (!spec.is_object()) {
        return out;
    }
    const StoredJson before = spec;
    const std::string model = base::textAt(spec, kModelKey);
    if (const auto moved = places.moved.find(model); moved != places.moved.end()) {
        spec[kModelKey] = moved->second;
    }
    const Workload* workload = findWorkload(base::textAt(spec, "workload"));
    for (auto& [key, value] : spec.items()) {
        const OptionSpec* option = findOption(key);
        if (option != nullptr && namesFiles(*option) && !isWritten(workload, key)) {
            findIn(value, places);
        }
    }
    if (spec != before) {
        out.experiment = base::compactText(spec);
    }
    if (isMissing(base::textAt(spec, kModelKey))) {
        out.missingModel = model;
    }
    return out;
}

} // namespace vitrine::engine
