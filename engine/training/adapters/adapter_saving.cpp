// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_saving.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/training/parameters/parameter_choice.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::Shape;

namespace {

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
    const bool fits = rank == b.rank() && rank == (isStackName(part.parameter) ? 3 : 2) && a[rank - 2] == b[rank - 1] &&
                      (rank == 2 || a[0] == b[0]) && static_cast<std::int64_t>(part.a.size()) == a.count() &&
                      static_cast<std::int64_t>(part.b.size()) == b.count();
    if (!fits) {
        throw base::Internal(fmt::format("adapter of {}: A {} of {} values and B {} of {} values do not fit",
                                         part.parameter, a.text(), part.a.size(), b.text(), part.b.size()));
    }
    const std::string module = isStackName(part.parameter) ? part.parameter : moduleOfParameter(part.parameter);
    const bool byParameter = names.targetsParameter(part.parameter);
    if (!byParameter && !names.targetsModule(module, false)) {
        throw base::Internal(fmt::format("adapter of {}: the config does not name it", part.parameter));
    }
    if (names.rankOf(byParameter ? part.parameter : module) != a[rank - 2]) {
        throw base::Internal(fmt::format("adapter of {}: the config has another rank", part.parameter));
    }
}

/// A tensor that stays as it is in the file that training began with.
struct KeptTensor {
    std::string name;
    const TensorEntry* entry;
};

std::vector<KeptTensor> keptTensors(const AdapterFile* before) {
    std::vector<KeptTensor> out;
    if (before == nullptr) {
        return out;
    }
    for (const AdapterWhole& whole : before->wholes()) {
        out.push_back({whole.text, whole.entry});
    }
    for (const auto& [text, entry] : before->parts()) {
        if (AdapterTensorName::parse(text)->part == AdapterTensorName::Part::Rows) {
            out.push_back({text, entry});
        }
    }
    return out;
}

void copyTensor(const SafetensorsFile& file, const TensorEntry& entry, SafetensorsWriter& writer) {
    constexpr std::uint64_t kPiece = std::uint64_t{8} << 20;
    std::vector<std::byte> bytes(std::min(entry.bytes, kPiece));
    for (std::uint64_t at = 0; at < entry.bytes; at += bytes.size()) {
        bytes.resize(std::min(entry.bytes - at, kPiece));
        file.read(entry, at, bytes.data(), bytes.size());
        writer.write(bytes.data(), bytes.size());
    }
}

/// Whether PEFT adapts the linear as a parameter: stacks, and routers, which are no linear modules of their own.
bool isParameterTarget(const Parameter& parameter) {
    return isStackName(parameter.name) || parameter.role == ParameterRole::Router;
}

/// The name by which the config can name a linear alone.
std::string wholeTarget(const Parameter& parameter) {
    return isParameterTarget(parameter) ? parameter.name : moduleOfParameter(parameter.name);
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
                         const std::map<std::string, std::string>& metadata, const AdapterFile* before) {
    std::set<std::string> adapted;
    for (const AdapterPartValues& part : parts) {
        adapted.insert(part.parameter);
    }
    std::vector<TensorSpec> specs;
    for (const AdapterPartValues& part : parts) {
        const auto nameOf = [&](bool first) {
            return loraName(part.parameter, adapted.contains(outerParameter(part.parameter)), part.embedding, first)
                .text();
        };
        const std::int64_t columns = part.aShape[part.aShape.rank() - 1];
        const std::int64_t rows = part.bShape[part.bShape.rank() - 2];
        specs.push_back(adapterSpec(nameOf(true), part.aShape.count() / columns, columns));
        specs.push_back(adapterSpec(nameOf(false), rows, part.bShape.count() / rows));
    }
    const std::vector<KeptTensor> kept = keptTensors(before);
    for (const KeptTensor& tensor : kept) {
        specs.push_back({tensor.name, tensor.entry->dtype, tensor.entry->shape});
    }
    const auto writer = SafetensorsWriter::create(path, specs, metadata);
    for (const AdapterPartValues& part : parts) {
        writer->write(part.a.data(), part.a.size() * sizeof(float));
        const std::vector<float> b = isStackName(part.parameter)
                                         ? transposedMatrix(part.b, part.bShape[0], part.bShape[1] * part.bShape[2])
                                         : part.b;
        writer->write(b.data(), b.size() * sizeof(float));
    }
    for (const KeptTensor& tensor : kept) {
        copyTensor(before->tensors(), *tensor.entry, *writer);
    }
    writer->finish();
}

void writeAdapter(const std::string& folder, const AdapterConfig& config, const std::vector<AdapterPartValues>& parts,
                  const AdapterFile* before) {
    const AdapterNames names(config, adapterConfigPath(folder));
    for (const AdapterPartValues& part : parts) {
        requireFits(part, names);
    }
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) {
        throw base::BadInput(fmt::format("{}: cannot be made: {}; give another folder", folder, failed.message()));
    }
    writeAdapterTensors(adapterTensorsPath(folder), parts, {{"format", "pt"}}, before);
    writeTextFile(adapterConfigPath(folder), config.text());
}

} // namespace vitrine::engine
