// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapter_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/training/host_floats.h"
#include "engine/training/parameter_choice.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::Shape;

namespace {

using Part = AdapterTensorName::Part;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kInner = ".base_layer";
constexpr std::string_view kWeight = ".weight";
constexpr std::array<std::pair<Part, std::string_view>, 5> kEnds = {{
    {Part::A, ".lora_A.weight"},
    {Part::B, ".lora_B.weight"},
    {Part::EmbeddingA, ".lora_embedding_A"},
    {Part::EmbeddingB, ".lora_embedding_B"},
    {Part::Magnitude, ".lora_magnitude_vector"},
}};

std::string configPathOf(const std::string& folder) {
    return folder + "/adapter_config.json";
}

std::string tensorsPathOf(const std::string& folder) {
    return folder + "/adapter_model.safetensors";
}

/// A stack of experts is a parameter of its module. Other linears are modules that have a parameter "weight".
bool isStack(std::string_view parameter) {
    return !parameter.ends_with(kWeight);
}

/// The module that holds the parameter.
std::string moduleOf(const std::string& parameter) {
    return parameter.substr(0, parameter.rfind('.'));
}

/// The modules of one layer have the parameters of a stack in this order, so gate_up_proj is wrapped first.
std::string outerParameter(const std::string& parameter) {
    constexpr std::string_view kFirst = ".gate_up_proj";
    return parameter.ends_with(kFirst) ? moduleOf(parameter) + ".down_proj" : std::string();
}

/// The name of A. `outerIsAdapted`: whether the parameter's outer neighbour, if it has one, is adapted too.
AdapterTensorName tensorName(const std::string& parameter, bool outerIsAdapted) {
    AdapterTensorName name;
    name.module = moduleOf(parameter);
    name.inner = outerIsAdapted ? 1 : 0;
    return name;
}

std::string unusedReason(const AdapterTensorName& name) {
    switch (name.part) {
    case Part::Magnitude:
        return "DoRA is not supported; give an adapter that was made with use_dora false";
    case Part::A:
    case Part::B:
    case Part::EmbeddingA:
    case Part::EmbeddingB:
        break;
    }
    return fmt::format("the model has no linear \"{}\" that the targets of adapter_config.json name; give the "
                       "adapter's own base model",
                       name.module);
}

/// The names of A and B; those of an embedding have other ends.
AdapterTensorName partName(AdapterTensorName name, bool embedding, bool first) {
    name.part = embedding ? (first ? Part::EmbeddingA : Part::EmbeddingB) : (first ? Part::A : Part::B);
    return name;
}

TensorSpec adapterSpec(std::string name, std::int64_t rows, std::int64_t columns) {
    TensorSpec spec;
    spec.name = std::move(name);
    spec.dtype = DType::F32;
    spec.shape = {rows, columns};
    return spec;
}

void requireFits(const AdapterPartValues& part, const AdapterNames& names) {
    const Shape& a = part.aShape;
    const Shape& b = part.bShape;
    const int rank = a.rank();
    const bool fits = rank == b.rank() && rank == (isStack(part.parameter) ? 3 : 2) && a[rank - 2] == b[rank - 1] &&
                      (rank == 2 || a[0] == b[0]) && static_cast<std::int64_t>(part.a.size()) == a.count() &&
                      static_cast<std::int64_t>(part.b.size()) == b.count();
    if (!fits) {
        throw base::Internal(fmt::format("adapter of {}: A {} of {} values and B {} of {} values do not fit",
                                         part.parameter, a.text(), part.a.size(), b.text(), part.b.size()));
    }
    const std::string module = isStack(part.parameter) ? part.parameter : moduleOf(part.parameter);
    const bool byParameter = names.targetsParameter(part.parameter);
    if (!byParameter && !names.targetsModule(module, false)) {
        throw base::Internal(fmt::format("adapter of {}: the config does not name it", part.parameter));
    }
    if (names.rankOf(byParameter ? part.parameter : module) != a[rank - 2]) {
        throw base::Internal(fmt::format("adapter of {}: the config has another rank", part.parameter));
    }
}

} // namespace

std::optional<AdapterTensorName> AdapterTensorName::parse(std::string_view name) {
    if (!name.starts_with(kPrefix)) {
        return std::nullopt;
    }
    name.remove_prefix(kPrefix.size());
    for (const auto& [part, end] : kEnds) {
        if (!name.ends_with(end)) {
            continue;
        }
        name.remove_suffix(end.size());
        AdapterTensorName out;
        out.part = part;
        for (; name.ends_with(kInner); name.remove_suffix(kInner.size())) {
            ++out.inner;
        }
        out.module = std::string(name);
        return out.module.empty() ? std::nullopt : std::optional(out);
    }
    return std::nullopt;
}

std::string AdapterTensorName::text() const {
    std::string out = std::string(kPrefix) + module;
    for (int i = 0; i < inner; ++i) {
        out += kInner;
    }
    const auto* const end =
        std::find_if(kEnds.begin(), kEnds.end(), [&](const auto& row) { return row.first == part; });
    return out += end->second;
}

AdapterFile::AdapterFile(AdapterConfig config, std::string configPath, std::shared_ptr<const SafetensorsFile> file)
    : config_(std::move(config)), configPath_(std::move(configPath)), names_(config_, configPath_),
      file_(std::move(file)) {}

AdapterFile AdapterFile::open(const std::string& folder) {
    const std::string configPath = configPathOf(folder);
    const std::string path = tensorsPathOf(folder);
    std::error_code ignored;
    if (!std::filesystem::exists(configPath, ignored)) {
        throw base::BadInput(configPath + ": missing; give a folder that PEFT or this program saved an adapter in");
    }
    if (!std::filesystem::exists(path, ignored)) {
        throw base::BadInput(path + ": missing; adapters in other files (adapter_model.bin) must be saved as "
                                    "safetensors first");
    }
    AdapterConfig config = AdapterConfig::read(configPath);
    if (config.dora) {
        throw base::Unsupported(configPath + ": use_dora: DoRA is not supported; give an adapter without it");
    }
    if (!config.modulesToSave.empty()) {
        throw base::Unsupported(fmt::format(
            "{}: modules_to_save: \"{}\" is stored whole, which is not supported; give an adapter without it",
            configPath, config.modulesToSave.front()));
    }
    return {std::move(config), configPath, SafetensorsFile::open(path)};
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
        const bool apart = parameter.role == ParameterRole::Head || parameter.role == ParameterRole::Embedding ||
                           (parameter.role == ParameterRole::Router && file_->find(nameOf(name).text()) == nullptr);
        const bool byModule = !isStack(name) && names_.targetsModule(moduleOf(name), apart);
        if (!byParameter && !byModule) {
            continue;
        }
        const std::string key = byParameter ? name : moduleOf(name);
        AdapterTarget target{name, names_.rankOf(key), 1, parameter.role == ParameterRole::Embedding};
        target.scale = static_cast<float>(config_.scaling(target.rank, names_.alphaOf(key)));
        used.push_back(findPair(parameter, target.rank));
        out.push_back(std::move(target));
    }
    requireUsed(used);
    return out;
}

AdapterTensorName AdapterFile::nameOf(const std::string& parameter) const {
    const std::string outer = outerParameter(parameter);
    return tensorName(parameter, !outer.empty() && names_.targetsParameter(outer));
}

AdapterFile::Pair AdapterFile::findPair(const Parameter& parameter, std::int64_t rank) const {
    const bool embedding = parameter.role == ParameterRole::Embedding;
    const kernels::WeightView& view = parameter.view;
    const std::int64_t in = embedding ? view.shape[0] : view.inFeatures();
    const std::int64_t out = embedding ? view.shape[1] : view.outFeatures();
    const AdapterTensorName name = nameOf(parameter.name);
    return {findTensor(partName(name, embedding, true), view.experts() * rank, in),
            findTensor(partName(name, embedding, false), out, rank * view.experts())};
}

const TensorEntry* AdapterFile::findTensor(const AdapterTensorName& name, std::int64_t rows,
                                           std::int64_t columns) const {
    const std::string text = name.text();
    const TensorEntry* entry = file_->find(text);
    if (entry == nullptr) {
        throw base::BadInput(fmt::format("{}: {}: missing, though the targets of adapter_config.json name its linear; "
                                         "give the adapter's own base model",
                                         file_->path(), text));
    }
    const DType type = entry->dtype;
    if (type != DType::F32 && type != DType::BF16 && type != DType::F16) {
        throw base::BadInput(fmt::format("{}: {}: must be F32, BF16 or F16", file_->path(), text));
    }
    if (entry->shape != std::vector<std::int64_t>{rows, columns}) {
        const bool shown = entry->shape.size() <= static_cast<std::size_t>(kernels::kMaxRank);
        throw base::BadInput(fmt::format(
            "{}: {}: must have the shape ({}, {}) for the model and the rank of adapter_config.json, not {}",
            file_->path(), text, rows, columns,
            shown ? Shape(std::span(entry->shape)).text() : fmt::format("{} dimensions", entry->shape.size())));
    }
    return entry;
}

void AdapterFile::requireUsed(const std::vector<Pair>& used) const {
    std::set<const TensorEntry*> known;
    for (const Pair& pair : used) {
        known.insert({pair.a, pair.b});
    }
    for (const TensorEntry& entry : file_->tensors()) {
        if (known.contains(&entry)) {
            continue;
        }
        const std::optional<AdapterTensorName> name = AdapterTensorName::parse(entry.name);
        throw base::BadInput(
            fmt::format("{}: {}: {}", file_->path(), entry.name,
                        name ? unusedReason(*name) : "is no tensor of a LoRA adapter; give an adapter without it"));
    }
    if (used.empty()) {
        throw base::BadInput(configPath_ + ": target_modules: names no linear of the model; give the adapter's own "
                                           "base model");
    }
}

void AdapterFile::read(const AdapterTarget& target, std::vector<float>& a, std::vector<float>& b) const {
    const AdapterTensorName name = nameOf(target.parameter);
    const TensorEntry* first = file_->find(partName(name, target.embedding, true).text());
    const TensorEntry* second = file_->find(partName(name, target.embedding, false).text());
    if (first == nullptr || second == nullptr) {
        throw base::Internal(fmt::format("{}: has no adapter of {}", file_->path(), target.parameter));
    }
    a = readFloats(*first);
    b = readFloats(*second);
    if (isStack(target.parameter)) {
        const std::int64_t experts = second->shape[1] / target.rank;
        b = transposedMatrix(b, second->shape[0] * target.rank, experts);
    }
}

std::vector<float> AdapterFile::readFloats(const TensorEntry& entry) const {
    const std::uint64_t width = kernels::bytesOf(entry.dtype, 1);
    std::vector<float> out(entry.bytes / width);
    if (entry.dtype == DType::F32) {
        file_->read(entry, 0, out.data(), entry.bytes);
        return out;
    }
    std::vector<std::uint16_t> narrow(out.size());
    file_->read(entry, 0, narrow.data(), entry.bytes);
    const bool bf16 = entry.dtype == DType::BF16;
    std::transform(narrow.begin(), narrow.end(), out.begin(),
                   [&](std::uint16_t bits) { return bf16 ? kernels::bf16ToFloat(bits) : kernels::f16ToFloat(bits); });
    return out;
}

namespace {

/// Whether PEFT adapts the linear as a parameter: stacks, and routers, which are no linear modules of their own.
bool isParameterTarget(const Parameter& parameter) {
    return isStack(parameter.name) || parameter.role == ParameterRole::Router;
}

/// The name by which the config can name a linear alone.
std::string wholeTarget(const Parameter& parameter) {
    return isParameterTarget(parameter) ? parameter.name : moduleOf(parameter.name);
}

/// The name without the number of the layer: "q_proj", or of parameters "mlp.experts.down_proj".
std::string shortTarget(const Parameter& parameter) {
    std::string whole = wholeTarget(parameter);
    if (parameter.layer < 0) {
        return whole;
    }
    if (!isParameterTarget(parameter)) {
        return whole.substr(whole.rfind('.') + 1);
    }
    const std::string number = fmt::format(".{}.", parameter.layer);
    const std::size_t at = whole.find(number);
    return at == std::string::npos ? whole : whole.substr(at + number.size());
}

} // namespace

void setTargets(AdapterConfig& config, std::span<const Parameter> parameters, const std::vector<std::string>& adapted) {
    const std::set<std::string> chosen(adapted.begin(), adapted.end());
    using Key = std::pair<bool, std::string>; ///< whether it is a parameter, and its short name
    const auto keyOf = [](const Parameter& parameter) {
        return Key{isParameterTarget(parameter), shortTarget(parameter)};
    };
    std::set<Key> partial;
    for (const Parameter& parameter : parameters) {
        if (isAdaptable(parameter) && !chosen.contains(parameter.name)) {
            partial.insert(keyOf(parameter));
        }
    }
    std::set<Key> names;
    for (const Parameter& parameter : parameters) {
        if (isAdaptable(parameter) && chosen.contains(parameter.name)) {
            Key key = keyOf(parameter);
            if (partial.contains(key)) {
                key.second = wholeTarget(parameter);
            }
            names.insert(std::move(key));
        }
    }
    config.targetRegex.clear();
    config.targetModules.clear();
    config.targetParameters.clear();
    for (const auto& [isParameter, name] : names) {
        (isParameter ? config.targetParameters : config.targetModules).push_back(name);
    }
}

void writeAdapterTensors(const std::string& path, const std::vector<AdapterPartValues>& parts,
                         const std::map<std::string, std::string>& metadata) {
    std::set<std::string> adapted;
    for (const AdapterPartValues& part : parts) {
        adapted.insert(part.parameter);
    }
    std::vector<TensorSpec> specs;
    for (const AdapterPartValues& part : parts) {
        const AdapterTensorName name = tensorName(part.parameter, adapted.contains(outerParameter(part.parameter)));
        const std::int64_t columns = part.aShape[part.aShape.rank() - 1];
        const std::int64_t rows = part.bShape[part.bShape.rank() - 2];
        specs.push_back(
            adapterSpec(partName(name, part.embedding, true).text(), part.aShape.count() / columns, columns));
        specs.push_back(adapterSpec(partName(name, part.embedding, false).text(), rows, part.bShape.count() / rows));
    }
    const auto writer = SafetensorsWriter::create(path, specs, metadata);
    for (const AdapterPartValues& part : parts) {
        writer->write(part.a.data(), part.a.size() * sizeof(float));
        const std::vector<float> b = isStack(part.parameter)
                                         ? transposedMatrix(part.b, part.bShape[0], part.bShape[1] * part.bShape[2])
                                         : part.b;
        writer->write(b.data(), b.size() * sizeof(float));
    }
    writer->finish();
}

void writeAdapter(const std::string& folder, const AdapterConfig& config, const std::vector<AdapterPartValues>& parts) {
    const AdapterNames names(config, configPathOf(folder));
    for (const AdapterPartValues& part : parts) {
        requireFits(part, names);
    }
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) {
        throw base::BadInput(fmt::format("{}: cannot be made: {}; give another folder", folder, failed.message()));
    }
    writeAdapterTensors(tensorsPathOf(folder), parts, {{"format", "pt"}});
    writeTextFile(configPathOf(folder), config.text());
}

} // namespace vitrine::engine
