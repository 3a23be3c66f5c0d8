// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/shards.h"

#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/quantization_files.h"
#include "engine/checkpoint/small_files.h"

namespace vitrine::engine {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<Shard> planShards(std::vector<TensorSpec> specs, std::uint64_t shardBytes) {
    std::vector<Shard> shards(1);
    std::uint32_t stream = 0;
    for (TensorSpec& spec : specs) {
        const std::uint64_t bytes = bytesOf(spec);
        if (!shards.back().tensors.empty() && shards.back().bytes + bytes > shardBytes) {
            shards.emplace_back().firstStream = stream;
        }
        shards.back().tensors.push_back(std::move(spec));
        shards.back().bytes += bytes;
        ++stream;
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
        shards[i].file = shards.size() == 1 ? "model.safetensors"
                                            : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    }
    return shards;
}

std::string indexText(const std::vector<Shard>& shards) {
    json weightMap = json::object();
    std::uint64_t total = 0;
    for (const Shard& shard : shards) {
        total += shard.bytes;
        for (const TensorSpec& spec : shard.tensors) {
            weightMap[spec.name] = shard.file;
        }
    }
    return json{{"metadata", {{"total_size", total}}}, {"weight_map", weightMap}}.dump(2) + "\n";
}

void requireFreeSpace(const std::string& folder, std::uint64_t bytes) {
    std::error_code error;
    fs::path place = fs::absolute(folder, error);
    while (!fs::exists(place, error) && place.has_relative_path()) {
        place = place.parent_path();
    }
    const fs::space_info disk = fs::space(place, error);
    // Some file systems do not know their size.
    const bool known = !error && disk.capacity > 0 && disk.capacity != static_cast<std::uintmax_t>(-1);
    if (known && disk.available < bytes) {
        throw base::BadInput(fmt::format("{}: needs {} of disk, and {} are free; free some, or name another folder",
                                         folder, base::formatBytes(bytes), base::formatBytes(disk.available)));
    }
}

bool isModelFile(const std::string& name) {
    return name == "config.json" || name == "model.safetensors" || name == kIndexFile ||
           (name.starts_with("model-") && name.ends_with(".safetensors"));
}

void makeModelFolder(const std::string& folder, std::uint64_t bytes) {
    requireFreeSpace(folder, bytes);
    const fs::path root(folder);
    std::error_code error;
    fs::create_directories(root, error);
    if (error) {
        throw base::BadInput(fmt::format("{}: cannot be made: {}; give another folder", folder, error.message()));
    }
    for (const char* file : {"config.json", "model.safetensors", kIndexFile}) {
        if (fs::exists(root / file, error)) {
            throw base::BadInput(folder + ": holds a model already; give another folder or remove it");
        }
    }
    removeParts(folder, isModelFile);
}

std::vector<std::string> smallFiles(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        const std::string kind = it->path().extension().string();
        const bool small = kind == ".json" || kind == ".txt" || kind == ".jinja" || kind == ".model";
        if (small && name != "config.json" && name != kTrainingFilesName && !name.ends_with(".index.json") &&
            !isQuantizationFile(name)) {
            names.push_back(name);
        }
    }
    const fs::path templates = fs::path(folder) / kTemplateFolder;
    for (fs::directory_iterator it(templates, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() == ".jinja") {
            names.push_back((kTemplateFolder / it->path().filename()).string());
        }
    }
    return names;
}

std::vector<std::string> copySmallFiles(const std::string& from, const std::string& to) {
    std::vector<std::string> names = smallFiles(from);
    for (const std::string& name : names) {
        const fs::path target = fs::path(to) / name;
        std::error_code error;
        fs::create_directories(target.parent_path(), error);
        fs::copy_file(fs::path(from) / name, target, fs::copy_options::overwrite_existing, error);
        if (error) {
            throw base::BadInput(fmt::format("{}: cannot be written: {}", target.string(), error.message()));
        }
    }
    return names;
}

} // namespace vitrine::engine
