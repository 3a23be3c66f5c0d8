// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/gguf_checkpoint.h"
#include "engine/checkpoint/gguf_config.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/checkpoint/quantization_files.h"
#include "engine/checkpoint/small_files.h"
#include "engine/checkpoint/synthetic.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kSynthetic = "synthetic:";

bool isRegular(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

bool isFolder(const fs::path& path) {
    std::error_code error;
    return fs::is_directory(path, error);
}

fs::path hubCache() {
    const auto variable = [](const char* name) -> std::optional<fs::path> {
        const char* value = std::getenv(name);
        return value == nullptr || *value == '\0' ? std::nullopt : std::optional<fs::path>(value);
    };
    if (const auto cache = variable("HF_HUB_CACHE")) {
        return *cache;
    }
    if (const auto home = variable("HF_HOME")) {
        return *home / "hub";
    }
    if (const auto cache = variable("XDG_CACHE_HOME")) {
        return *cache / "huggingface" / "hub";
    }
    return variable("HOME").value_or("/") / ".cache" / "huggingface" / "hub";
}

/// ORG and NAME of "ORG/NAME", when the text has that form.
std::optional<std::pair<std::string, std::string>> splitRepository(const std::string& text) {
    const std::size_t slash = text.find('/');
    const auto plain = [](const std::string& part) {
        const bool dots = part.find_first_not_of('.') == std::string::npos; // "", ".", ".."
        return !dots && std::all_of(part.begin(), part.end(), [](unsigned char c) {
            return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
        });
    };
    if (slash == std::string::npos) {
        return std::nullopt;
    }
    std::pair<std::string, std::string> parts{text.substr(0, slash), text.substr(slash + 1)};
    return plain(parts.first) && plain(parts.second) ? std::optional(parts) : std::nullopt;
}

/// The snapshot folder of ORG/NAME in the local cache: of refs/main, or the only one.
fs::path findSnapshot(const std::string& model, const std::pair<std::string, std::string>& repository) {
    const fs::path cache = hubCache();
    const fs::path root = cache / fmt::format("models--{}--{}", repository.first, repository.second);
    if (!isFolder(root)) {
        throw base::BadInput(
            fmt::format("{}: neither a folder nor a model in the Hugging Face cache {}; download it first, "
                        "or try synthetic:NAME",
                        model, cache.string()));
    }
    if (isRegular(root / "refs" / "main")) {
        std::string revision = readSmallFile(root / "refs" / "main");
        revision.erase(revision.find_last_not_of(" \n\r\t") + 1);
        const bool plain = !revision.empty() && std::all_of(revision.begin(), revision.end(),
                                                            [](unsigned char c) { return std::isalnum(c) != 0; });
        if (plain && isFolder(root / "snapshots" / revision)) {
            return root / "snapshots" / revision;
        }
    }
    std::vector<fs::path> snapshots;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "snapshots", error)) {
        snapshots.push_back(entry.path());
    }
    if (snapshots.size() != 1) {
        throw base::BadInput(fmt::format("{}: refs/main: names no snapshot, and there are {}; give the folder of one",
                                         root.string(), snapshots.size()));
    }
    return snapshots.front();
}

/// A file was given where a folder must be.
[[noreturn]] void refuseFile(const fs::path& path) {
    throw base::BadInput(path.string() +
                         ": is a file; give the folder that holds config.json and the weights, or a GGUF file");
}

fs::path findFolder(const std::string& model) {
    fs::path path(model);
    std::error_code error;
    if (isFolder(path)) {
        return path;
    }
    if (!model.empty() && fs::exists(path, error)) {
        refuseFile(path);
    }
    if (const auto repository = splitRepository(model)) {
        return findSnapshot(model, *repository);
    }
    throw base::BadInput(
        fmt::format("{}: no such folder; give a model folder, a GGUF file, ORG/NAME of the local Hugging Face cache or "
                    "synthetic:NAME",
                    model.empty() ? "model" : model));
}

std::string readConfigText(const fs::path& folder) {
    if (hasFile(folder / "config.json")) {
        return readSmallFile(folder / "config.json");
    }
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() == ".gguf") {
            throw base::BadInput(folder.string() + ": config.json: not found; give the GGUF file itself");
        }
    }
    if (isRegular(folder / "adapter_config.json")) {
        throw base::BadInput(folder.string() +
                             ": config.json: not found; this is the folder of an adapter, give that of its "
                             "base model");
    }
    throw base::BadInput(folder.string() + ": config.json: not found; give the folder of a model in Hugging Face form");
}

ModelSource openSynthetic(const std::string& model, const std::map<std::string, std::string>& overrides) {
    const std::string name = model.substr(kSynthetic.size());
    const json config = overriddenConfig(syntheticConfigJson(name), overrides, model);
    ModelSource source;
    source.name = model;
    source.config = parseModelConfig(config, model);
    packBySelection(source.config);
    source.configText = config.dump(2) + "\n";
    source.generation.eosTokens = source.config.eosTokens;
    source.generation.bosToken = source.config.bosToken;
    source.generation.padToken = source.config.padToken;
    return source;
}

/// A file that says by its name or its first bytes that it is one.
bool isGguf(const std::string& model) {
    return isRegular(model) && (fs::path(model).extension() == ".gguf" || GgufFile::is(model));
}

ModelSource openGguf(const std::string& model) {
    const auto file = std::make_shared<const GgufFile>(model);
    const json config = ggufConfigJson(*file);
    ModelSource source;
    source.name = model;
    source.config = parseModelConfig(config, model);
    source.configText = config.dump(2) + "\n";
    source.config.quantization = ggufQuantization();
    source.checkpoint = openGgufCheckpoint(file, source.config);
    checkTensors(source.config, *source.checkpoint);
    if (file->header().find("tokenizer.ggml.tokens") != nullptr) {
        source.tokenizerFile = model;
    }
    source.chat = readChatFiles(file->header());
    return source;
}

} // namespace

std::string modelFolder(const std::string& model) {
    if (model.find('\0') != std::string::npos) {
        throw base::BadInput("model: the name holds a NUL byte");
    }
    return findFolder(model).string();
}

ModelSource openModel(const std::string& model, const std::map<std::string, std::string>& configOverrides) {
    if (model.compare(0, kSynthetic.size(), kSynthetic) == 0) {
        return openSynthetic(model, configOverrides);
    }
    if (!configOverrides.empty()) {
        throw base::BadInput(fmt::format("{}: {}: config fields can be set for synthetic models only", model,
                                         configOverrides.begin()->first));
    }
    if (model.find('\0') == std::string::npos && isGguf(model)) {
        return openGguf(model);
    }
    const fs::path folder = modelFolder(model);
    ModelSource source;
    source.name = model;
    source.folder = folder.string();
    source.configText = readConfigText(folder);
    const std::string configPath = (folder / "config.json").string();
    json config = parseSmallText(source.configText, configPath);
    const std::optional<QuantizationFile> beside = findQuantizationFile(folder, config);
    source.config = parseModelConfig(config, configPath, beside ? &*beside : nullptr);
    const fs::path generation = folder / "generation_config.json";
    if (hasFile(generation)) {
        source.generation = parseGenerationConfig(parseSmallFile(generation), generation.string());
    }
    source.checkpoint = Checkpoint::open(source.folder);
    const bool tied = source.config.tiedEmbeddings;
    checkTensors(source.config, *source.checkpoint);
    // Models that are made of this one say what it is, not what its config said.
    bool changed = false;
    if (tied != source.config.tiedEmbeddings) {
        config["tie_word_embeddings"] = source.config.tiedEmbeddings;
        changed = true;
    }
    if (beside && !config.contains("quantization_config")) {
        config["quantization_config"] = *beside->object;
        changed = true;
    }
    if (changed) {
        source.configText = config.dump(2) + "\n";
    }
    if (hasFile(folder / "tokenizer.json")) {
        source.tokenizerFile = (folder / "tokenizer.json").string();
    }
    source.chat = readChatFiles(source.folder);
    return source;
}

} // namespace vitrine::engine
