// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_files.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/training/parameters/parameter_choice.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::Shape;

using Part = AdapterTensorName::Part;

namespace {

std::string unusedReason(const AdapterTensorName& name) {
    switch (name.part) {
    case Part::Magnitude:
        return "is of DoRA, but adapter_config.json has no use_dora";
    case Part::BiasOfB:
        return "biases of B are not supported; give an adapter that was made with lora_bias false";
    case Part::Rows:
        return "trainable_token_indices of adapter_config.json names no rows for it";
    default:
        return fmt::format("the model has no linear \"{}\" that the targets of adapter_config.json name; give the "
                           "adapter's own base model",
                           name.module);
    }
}

} // namespace

std::string adapterConfigPath(const std::string& folder) {
    return folder + "/adapter_config.json";
}

std::string adapterTensorsPath(const std::string& folder) {
    return folder + "/adapter_model.safetensors";
}

AdapterFile::AdapterFile(std::string folder, AdapterConfig config, std::shared_ptr<const SafetensorsFile> file)
    : folder_(std::move(folder)), configPath_(adapterConfigPath(folder_)), config_(std::move(config)),
      names_(config_, configPath_), file_(std::move(file)) {
    sortTensors();
}

AdapterFile AdapterFile::open(const std::string& folder) {
    const std::string configPath = adapterConfigPath(folder);
    const std::string path = adapterTensorsPath(folder);
    std::error_code ignored;
    if (!std::filesystem::exists(configPath, ignored)) {
        throw base::BadInput(configPath + ": missing; give a folder that PEFT or this program saved an adapter in");
    }
    if (!std::filesystem::exists(path, ignored)) {
        throw base::BadInput(path + ": missing; adapters in other files (adapter_model.bin) must be saved as "
                                    "safetensors first");
    }
    return {folder, AdapterConfig::read(configPath), SafetensorsFile::open(path)};
}

void AdapterFile::sortTensors() {
    std::string adapter;
    for (const TensorEntry& entry : file_->tensors()) {
        addTensor(entry, adapter);
    }
}

void AdapterFile::addTensor(const TensorEntry& entry, std::string& adapter) {
    const std::optional<AdapterTensorName> name = AdapterTensorName::parse(entry.name);
    if (!name) {
        bad(entry, "is no tensor of a LoRA adapter; give an adapter without it");
    }
    if (!name->adapter.empty()) {
        if (!adapter.empty() && adapter != name->adapter) {
            bad(entry,
                fmt::format("belongs to the adapter \"{}\", and other tensors belong to \"{}\"; save one of them",
                            name->adapter, adapter));
        }
        adapter = name->adapter;
    }
    if (name->part == Part::Unused || name->leaf == "inv_freq") {
        return;
    }
    if (name->part != Part::Whole) {
        if (!parts_.emplace(name->text(), &entry).second) {
            bad(entry, "is in the file under another name as well");
        }
        return;
    }
    AdapterWhole whole{name->parameter(), name->text(), &entry, name->saved, name->saved};
    whole.saved = whole.saved || (config_.tiesWeights &&
                                  ((whole.parameter == "lm_head.weight" && names_.saves("model.embed_tokens")) ||
                                   (whole.parameter == "model.embed_tokens.weight" && names_.saves("lm_head"))));
    for (std::string module = name->module; !whole.saved && !module.empty();) {
        whole.saved = names_.saves(module);
        const std::size_t stop = module.rfind('.');
        module.resize(stop == std::string::npos ? 0 : stop);
    }
    const auto other = std::ranges::find(wholes_, whole.parameter, &AdapterWhole::parameter);
    if (other == wholes_.end()) {
        wholes_.push_back(std::move(whole));
    } else if (name->saved == other->copy) {
        bad(entry, "is in the file under another name as well");
    } else if (other->copy) { // PEFT reads the name without modules_to_save where the file has both
        *other = std::move(whole);
    }
}

const TensorEntry* AdapterFile::find(const std::string& text) const {
    const auto found = parts_.find(text);
    return found == parts_.end() ? nullptr : found->second;
}

void AdapterFile::bad(const TensorEntry& entry, const std::string& what) const {
    throw base::BadInput(fmt::format("{}: {}: {}", file_->path(), entry.name, what));
}

std::vector<AdapterTarget> AdapterFile::targets(std::span<const Parameter> parameters) const {
    std::vector<AdapterTarget> out;
    std::vector<Pair> used;
    for (const Parameter& parameter : parameters) {
        if (!isAdaptable(parameter)) {
            continue;
        }
        const std::string& name = parameter.name;
        const bool byParameter = names_.targetsParameter(name);
        // Whether a router is a linear module depends on the version of transformers that the file was made with.
        const bool apart =
            parameter.role == ParameterRole::Head || parameter.role == ParameterRole::Embedding ||
            (parameter.role == ParameterRole::Router && find(nameOf(name, false, true).text()) == nullptr);
        const bool byTie = config_.tiesWeights && parameter.role == ParameterRole::Head &&
                           names_.targetsModule("model.embed_tokens", true) &&
                           find(nameOf(name, false, true).text()) != nullptr;
        const bool byModule = !isStackName(name) && (byTie || names_.targetsModule(moduleOfParameter(name), apart));
        if (!byParameter && !byModule) {
            continue;
        }
        const std::string key = byParameter ? name : byTie ? "model.embed_tokens" : moduleOfParameter(name);
        AdapterTarget target{name, names_.rankOf(key), 1, parameter.role == ParameterRole::Embedding};
        target.scale = static_cast<float>(config_.scaling(target.rank, names_.alphaOf(key)));
        used.push_back(findPair(parameter, target.rank));
        if (config_.dora) {
            requireMagnitude(name);
        } else {
            out.push_back(std::move(target));
        }
    }
    requireUsed(used);
    return out;
}

AdapterTensorName AdapterFile::nameOf(const std::string& parameter, bool embedding, bool first) const {
    const std::string outer = outerParameter(parameter);
    return loraName(parameter, !outer.empty() && names_.targetsParameter(outer), embedding, first);
}

void AdapterFile::requireMagnitude(const std::string& parameter) const {
    AdapterTensorName name;
    name.module = moduleOfParameter(parameter);
    name.part = Part::Magnitude;
    if (find(name.text()) == nullptr) {
        throw base::BadInput(fmt::format("{}: {}: missing, though adapter_config.json has use_dora; save the adapter "
                                         "again",
                                         file_->path(), name.text()));
    }
}

AdapterFile::Pair AdapterFile::findPair(const Parameter& parameter, std::int64_t rank) const {
    const bool embedding = parameter.role == ParameterRole::Embedding;
    const kernels::WeightView& view = parameter.view;
    const std::int64_t in = embedding ? view.shape[0] : view.inFeatures();
    const std::int64_t out = embedding ? view.shape[1] : view.outFeatures();
    return {findTensor(nameOf(parameter.name, embedding, true), view.experts() * rank, in),
            findTensor(nameOf(parameter.name, embedding, false), out, rank * view.experts())};
}

const TensorEntry* AdapterFile::findTensor(const AdapterTensorName& name, std::int64_t rows,
                                           std::int64_t columns) const {
    const std::string text = name.text();
    const TensorEntry* entry = find(text);
    if (entry == nullptr) {
        throw base::BadInput(fmt::format("{}: {}: missing, though the targets of adapter_config.json name its linear; "
                                         "give the adapter's own base model",
                                         file_->path(), text));
    }
    if (!kernels::isFloat(entry->dtype)) {
        bad(*entry, "must be F32, BF16 or F16");
    }
    if (entry->shape != std::vector<std::int64_t>{rows, columns}) {
        const bool shown = entry->shape.size() <= static_cast<std::size_t>(kernels::kMaxRank);
        bad(*entry,
            fmt::format(
                "must have the shape ({}, {}) for the model and the rank of adapter_config.json, not {}", rows, columns,
                shown ? Shape(std::span(entry->shape)).text() : fmt::format("{} dimensions", entry->shape.size())));
    }
    return entry;
}

void AdapterFile::requireUsed(const std::vector<Pair>& used) const {
    std::set<const TensorEntry*> known;
    for (const Pair& pair : used) {
        known.insert({pair.a, pair.b});
    }
    for (const auto& [text, entry] : parts_) {
        const AdapterTensorName name = *AdapterTensorName::parse(text);
        const bool inWeights =
            (name.part == Part::Magnitude && config_.dora) || (name.part == Part::Rows && !config_.trainedRows.empty());
        if (!known.contains(entry) && !inWeights) {
            bad(*entry, unusedReason(name));
        }
    }
    if (used.empty() && wholes_.empty() && parts_.empty()) {
        throw base::BadInput(configPath_ + ": target_modules: names no linear of the model; give the adapter's own "
                                           "base model");
    }
}

void AdapterFile::read(const AdapterTarget& target, std::vector<float>& a, std::vector<float>& b) const {
    const TensorEntry* first = find(nameOf(target.parameter, target.embedding, true).text());
    const TensorEntry* second = find(nameOf(target.parameter, target.embedding, false).text());
    if (first == nullptr || second == nullptr) {
        throw base::Internal(fmt::format("{}: has no adapter of {}", file_->path(), target.parameter));
    }
    a = readFloats(*first);
    b = readFloats(*second);
    if (isStackName(target.parameter)) {
        const std::int64_t experts = second->shape[1] / target.rank;
        b = transposedMatrix(b, second->shape[0] * target.rank, experts);
    }
}

std::vector<float> AdapterFile::readFloats(const TensorEntry& entry) const {
    if (!kernels::isFloat(entry.dtype)) {
        bad(entry, "must be F32, BF16 or F16");
    }
    std::vector<std::byte> bytes(entry.bytes);
    file_->read(entry, 0, bytes.data(), bytes.size());
    std::vector<float> out(entry.bytes / kernels::bytesOf(entry.dtype, 1));
    kernels::loadFloats(entry.dtype, bytes.data(), 0, static_cast<std::int64_t>(out.size()), out.data());
    return out;
}

} // namespace vitrine::engine
