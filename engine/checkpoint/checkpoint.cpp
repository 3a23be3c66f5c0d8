// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "base/strict_json.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/tensor_table.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";
constexpr std::string_view kHead = "lm_head.weight";

bool isFile(const fs::path& path) {
    std::error_code error;
    return fs::exists(path, error) && !error && !fs::is_directory(path, error);
}

/// tensor name -> shard's file name, checked.
std::map<std::string, std::string> readIndex(const std::string& path) {
    base::JsonLimits limits;
    limits.maxBytes = std::size_t{100} << 20;
    limits.maxDepth = 8;
    const json root = base::readStrictJson(path, limits);
    ConfigReader reader(root, path);
    const json* weightMap = reader.find("weight_map");
    if (weightMap == nullptr || !weightMap->is_object()) {
        reader.bad("weight_map", "must be an object from tensor names to file names");
    }
    if (weightMap->empty()) {
        reader.bad("weight_map", "names no tensor");
    }
    std::map<std::string, std::string> files;
    for (const auto& [name, file] : weightMap->items()) {
        if (!file.is_string()) {
            reader.bad("weight_map", fmt::format("the file of {} must be a text", quotedText(name)));
        }
        const auto& text = file.get_ref<const std::string&>();
        // NUL cannot be in JSON text that passed the strict reader.
        if (text.empty() || text.find_first_of("/\\") != std::string::npos || text.find("..") != std::string::npos) {
            reader.bad("weight_map",
                       fmt::format("{} of {} is not a plain file name", quotedText(text), quotedText(name)));
        }
        files.emplace(name, text);
    }
    return files;
}

class FolderCheckpoint final : public TensorTable {
public:
    explicit FolderCheckpoint(const std::string& folder) : TensorTable(folder) {
        const fs::path root(folder);
        // transformers, too, prefers the single file.
        if (isFile(root / kSingleFile)) {
            addFile((root / kSingleFile).string());
            for (const TensorEntry& entry : files_.front()->tensors()) {
                addOnce(*files_.front(), entry);
            }
        } else if (isFile(root / kIndexFile)) {
            openShards(root);
        } else {
            refuse(root);
        }
    }

private:
    const SafetensorsFile& addFile(const std::string& path) {
        files_.push_back(SafetensorsFile::open(path));
        return *files_.back();
    }

    void addOnce(const SafetensorsFile& file, const TensorEntry& entry) {
        if (const Location* other = add(file, entry)) {
            throw base::BadInput(fmt::format("{}: {}: is in {} as well; a tensor may be in one file only", file.path(),
                                             quotedText(entry.name),
                                             fs::path(other->file->path()).filename().string()));
        }
    }

    void openShards(const fs::path& root) {
        const std::string indexPath = (root / kIndexFile).string();
        const std::map<std::string, std::string> index = readIndex(indexPath);
        std::map<std::string, const SafetensorsFile*> opened;
        for (const auto& [name, file] : index) {
            auto [slot, isNew] = opened.emplace(file, nullptr);
            if (isNew) {
                if (!isFile(root / file)) {
                    throw base::BadInput(
                        fmt::format("{}: weight_map: {} is not in the folder; download the model again", indexPath,
                                    quotedText(file)));
                }
                slot->second = &addFile((root / file).string());
            }
            if (slot->second->find(name) == nullptr) {
                throw base::BadInput(
                    fmt::format("{}: weight_map: {} is not in {}", indexPath, quotedText(name), quotedText(file)));
            }
        }
        for (const auto& file : files_) {
            for (const TensorEntry& entry : file->tensors()) {
                addOnce(*file, entry);
                if (index.find(entry.name) == index.end()) {
                    base::logInfo(fmt::format("{}: {}: is not in the index", file->path(), quotedText(entry.name)));
                }
            }
        }
    }

    [[noreturn]] static void refuse(const fs::path& root) {
        std::error_code error;
        bool pickle = false;
        bool gguf = false;
        for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
            const std::string extension = entry.path().extension().string();
            pickle = pickle || extension == ".bin" || extension == ".pt" || extension == ".pth";
            gguf = gguf || extension == ".gguf";
        }
        if (gguf) {
            throw base::BadInput(root.string() + ": weights: no safetensors files are here; give the GGUF file itself");
        }
        if (pickle) {
            throw base::Unsupported(root.string() +
                                    ": weights: only pickled weights (.bin, .pt) are here, which can run "
                                    "code when read; use the model in safetensors form");
        }
        throw base::BadInput(fmt::format("{}: weights: neither {} nor {} is here; give the folder of a complete model",
                                         root.string(), kSingleFile, kIndexFile));
    }

    std::vector<std::shared_ptr<const SafetensorsFile>> files_;
};

} // namespace

const Checkpoint::Location* findModelTensor(const Checkpoint& checkpoint, std::string_view name) {
    constexpr std::string_view kPrefix = "model.";
    const Checkpoint::Location* found = checkpoint.find(name);
    if (found == nullptr && name.starts_with(kPrefix)) {
        found = checkpoint.find(name.substr(kPrefix.size()));
    }
    return found == nullptr && name == kEmbedding ? checkpoint.find(kHead) : found;
}

std::shared_ptr<const Checkpoint> Checkpoint::open(const std::string& folder) {
    return std::make_shared<const FolderCheckpoint>(folder);
}

} // namespace vitrine::engine
