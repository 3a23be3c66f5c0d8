// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/merged_model.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/shards.h"
#include "engine/checkpoint/single_expert.h"
#include "engine/quant/storage_scheme.h"
#include "engine/quant/value_packer.h"
#include "engine/training/files/model_values.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/core/floats.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {

namespace {

namespace fs = std::filesystem;

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;
using kernels::WeightFormat;

class ModelWriter {
public:
    ModelWriter(const ModelSource& source, Model& model, WeightFormat packed, const PackedCopies* copies,
                base::ProgressSink* progress)
        : source_(source), model_(model), weights_(model), copies_(copies), progress_(progress),
          config_(source.config) {
        config_.packings.clear();
        if (copies != nullptr) {
            packCopies();
        } else if (packed == linearPacking().format) {
            packLinears();
        } else if (packed != WeightFormat::Dense) {
            packExperts(packed);
        }
    }

    /// The tensors of the file: those that the model needs, and then those beside packed weights.
    std::vector<TensorSpec> tensors() const {
        std::vector<TensorSpec> specs = expectedTensors(config_);
        for (TensorSpec& spec : specs) {
            if (!spec.packed()) {
                spec.dtype = typeOf(spec);
            } else if (copies_ != nullptr && spec.dtype == DType::BF16) { // which stands for any type of scales
                spec.dtype = packedWeight(parameterOf(spec.weight)).scales.dtype;
            }
        }
        for (const auto& [weight, packing] : config_.packings) {
            for (const SideTensor& side : sideTensorsOf(weight)) {
                const auto count = static_cast<std::int64_t>(side.bytes.size() / kernels::bytesOf(side.dtype, 1));
                specs.push_back({side.name, side.dtype, {count}});
            }
        }
        return specs;
    }

    void write(const std::string& folder) {
        const std::vector<TensorSpec> specs = tensors();
        const std::size_t stored = expectedTensors(config_).size();
        const auto writer =
            SafetensorsWriter::create((fs::path(folder) / "model.safetensors").string(), specs, {{"format", "pt"}});
        for (std::size_t i = 0; i < stored; ++i) {
            model_.context().throwIfStopped();
            if (progress_ != nullptr) {
                progress_->progress("Writing " + specs[i].name, i, specs.size());
            }
            writeTensor(specs[i], *writer);
        }
        for (const auto& [weight, packing] : config_.packings) {
            for (const SideTensor& side : sideTensorsOf(weight)) {
                writer->write(side.bytes.data(), side.bytes.size());
            }
        }
        writer->finish();
    }

    /// What config.json says of packed weights: of copies.
    Quantization quantization() const {
        Quantization out;
        out.packing = config_.packings.begin()->second;
        out.allLinears = out.packing.scheme != StorageScheme::GptOss;
        out.symmetric = true;
        out.ignored = dense_;
        return out;
    }

private:
    static std::string parameterOf(const std::string& weight) {
        const SingleExpert single(weight);
        return single.expert >= 0 ? single.parameter : weight;
    }

    const kernels::WeightView& packedWeight(const std::string& parameter) const {
        const std::optional<std::size_t> copy = copies_->indexOf(parameter);
        return copy ? copies_->copy(*copy) : weights_.weight(parameter);
    }

    /// Lists the weights that have copies, and those that the model has packed.
    void packCopies() {
        const auto stored = [&](std::size_t i) {
            const auto& packing = copies_->target(i).packing;
            return packing ? *packing : source_.config.packings.begin()->second;
        };
        if (copies_->size() > 0 && canStack(stored(0))) {
            config_.fusedExperts = false; // experts are packed by themselves
        }
        dense_ = {"lm_head"}; // other programs do not know all patterns: each module that stays dense is named
        for (const PackableWeight& weight : packableWeights(config_)) {
            const std::string parameter = parameterOf(weight.name);
            shapes_[weight.name] = weight.shape;
            if (copies_->indexOf(parameter)) {
                config_.packings[weight.name] = stored(*copies_->indexOf(parameter));
            } else if (weights_.weight(parameter).quantized() && !weights_.adapted(parameter)) {
                config_.packings[weight.name] = *source_.config.packing(weight.name);
            } else {
                dense_.emplace_back(moduleOf(weight.name));
            }
        }
    }

    /// A tensor of a packed weight as it lies in memory: of an expert that is stored by itself its rows.
    void writeCopy(const TensorSpec& spec, SafetensorsWriter& writer) {
        kernels::WeightView view = packedWeight(parameterOf(spec.weight));
        TensorView field = view.field(spec.stored.field);
        if (const SingleExpert single(spec.weight); single.expert >= 0) {
            const Shape one(spec.stored.memoryShape);
            const TensorView matrix = matrixOf(field, single.expert);
            field = kernels::sliceRows(matrix, single.up ? one[0] : 0, single.up ? 2 * one[0] : one[0]);
        }
        std::vector<std::uint8_t> memory(field.bytes());
        model_.context().download(field.data, memory.data(), memory.size());
        if (!spec.stored.converts) {
            writer.write(memory.data(), memory.size());
            return;
        }
        std::vector<std::uint8_t> bytes(bytesOf(spec));
        toStored(spec.packing, spec.stored, memory, bytes);
        writer.write(bytes.data(), bytes.size());
    }

    /// Lists the linears; what is added to their scales is known when they are packed.
    void packLinears() {
        if (std::ranges::any_of(source_.config.packings,
                                [](const auto& packing) { return packing.second.scheme == StorageScheme::GptOss; })) {
            throw base::Unsupported(
                "merge: packed experts and packed linears are two layouts; choose that of the model");
        }
        const WeightPacking packing = linearPacking();
        const kernels::PackedFormat& format = kernels::packedFormat(packing.format);
        for (const PackableWeight& weight : packableWeights(config_)) {
            if (weight.part != ModelPart::Attention && weight.part != ModelPart::DenseMlp) {
                continue;
            }
            if (weight.shape[1] % format.group != 0) {
                throw base::BadInput(
                    fmt::format("merge: {}: {} needs an input axis that is a multiple of {}; choose bf16", weight.name,
                                format.title, format.group));
            }
            config_.packings[weight.name] = packing;
        }
    }

    /// Lists the stacks of experts.
    void packExperts(WeightFormat packed) {
        if (config_.family != Family::GptOss || packed != stackPacking().format) {
            throw base::Unsupported("merge: only gpt_oss models have a layout for packed experts; choose bf16");
        }
        for (const PackableWeight& weight : packableWeights(config_)) {
            if (weight.shape.size() == 3) {
                config_.packings[weight.name] = stackPacking();
            }
        }
    }

    std::vector<SideTensor> sideTensorsOf(const std::string& weight) const {
        const auto single = shapes_.find(weight);
        return makeSideTensors(*config_.packing(weight), weight,
                               single != shapes_.end() ? std::span<const std::int64_t>(single->second)
                                                       : weights_.parameter(weight).view.shape.dims());
    }

    /// A tensor of a linear. All tensors of one follow each other.
    void writeLinear(const TensorSpec& spec, SafetensorsWriter& writer) {
        if (packedName_ != spec.weight) {
            packedLinear_ = packValues(spec.packing.format, weights_.values(spec.weight));
            packedName_ = spec.weight;
            config_.packings.at(spec.weight).scaleOffset = packedLinear_.scaleOffset;
        }
        const std::vector<std::uint8_t>& field = packedLinear_.field(spec.stored.field);
        writer.write(field.data(), field.size());
    }

    /// What was trained in float32 stays float32; other tensors have the types of the source.
    DType typeOf(const TensorSpec& spec) const {
        const SingleExpert single(spec.name);
        const Parameter& parameter = weights_.parameter(single.expert >= 0 ? single.parameter : spec.name);
        if (parameter.view.data.dtype == DType::F32) {
            return DType::F32;
        }
        if (source_.config.packing(spec.name) != nullptr) {
            return DType::BF16; // the source has it packed
        }
        const Checkpoint::Location* stored =
            source_.checkpoint == nullptr ? nullptr : findModelTensor(*source_.checkpoint, spec.name);
        return stored == nullptr ? DType::BF16 : stored->entry->dtype;
    }

    void writeTensor(const TensorSpec& spec, SafetensorsWriter& writer) {
        if (spec.packed() && copies_ != nullptr) {
            writeCopy(spec, writer);
            return;
        }
        if (spec.packed()) {
            spec.weightShape.rank() == 3 ? writePacked(spec, writer) : writeLinear(spec, writer);
            return;
        }
        const SingleExpert single(spec.name);
        if (single.expert >= 0) {
            const std::vector<float> stack = weights_.values(single.parameter, single.expert);
            const auto count = static_cast<std::size_t>(spec.shape[0] * spec.shape[1]);
            const std::size_t begin = single.up ? stack.size() - count : 0;
            writeFloats(spec.dtype, std::span(stack).subspan(begin, count), writer);
            return;
        }
        const kernels::WeightView& view = weights_.parameter(spec.name).view;
        if (view.shape.rank() < 3) {
            writeFloats(spec.dtype, weights_.values(spec.name), writer);
            return;
        }
        // gpt_oss has its dense experts as (experts, in, out).
        for (std::int64_t expert = 0; expert < view.experts(); ++expert) {
            std::vector<float> values = weights_.values(spec.name, expert);
            if (config_.family == Family::GptOss) {
                values = transposedMatrix(values, view.outFeatures(), view.inFeatures());
            }
            writeFloats(spec.dtype, values, writer);
        }
    }

    void writeFloats(DType dtype, std::span<const float> values, SafetensorsWriter& writer) {
        const auto count = static_cast<std::int64_t>(values.size());
        bytes_.resize(kernels::bytesOf(dtype, count));
        kernels::storeFloats(dtype, values.data(), count, bytes_.data(), 0);
        writer.write(bytes_.data(), bytes_.size());
    }

    /// Blocks or scales of a stack. Where nothing changed they are those of the model.
    void writePacked(const TensorSpec& spec, SafetensorsWriter& writer) {
        kernels::WeightView view = weights_.weight(spec.weight);
        if (view.quantized() && !weights_.adapted(spec.weight)) {
            const TensorView& stored = view.field(spec.stored.field);
            bytes_.resize(stored.bytes());
            model_.context().download(stored.data, bytes_.data(), bytes_.size());
            writer.write(bytes_.data(), bytes_.size());
            return;
        }
        for (std::int64_t expert = 0; expert < view.experts(); ++expert) {
            const PackedValues packed = packValues(spec.packing.format, weights_.values(spec.weight, expert));
            const std::vector<std::uint8_t>& field = packed.field(spec.stored.field);
            writer.write(field.data(), field.size());
        }
    }

    const ModelSource& source_;
    Model& model_;
    ModelValues weights_;
    const PackedCopies* copies_; ///< null: weights are packed as they are written
    base::ProgressSink* progress_;
    ModelConfig config_;
    std::map<std::string, std::vector<std::int64_t>> shapes_; ///< of weights beside copies, experts by themselves
    std::vector<std::string> dense_;                          ///< modules that stay dense beside copies
    std::vector<std::byte> bytes_;
    std::string packedName_; ///< of the linear that was packed last
    PackedValues packedLinear_;
};

std::uint64_t bytesOfAll(const std::vector<TensorSpec>& specs) {
    std::uint64_t bytes = 0;
    for (const TensorSpec& spec : specs) {
        bytes += bytesOf(spec);
    }
    return bytes;
}

/// Writes the weights, and the other files with what `quantization` makes of the config's quantization_config.
void writeModel(const std::string& folder, const ModelSource& source, const Model& model, ModelWriter& writer,
                const std::function<void(nlohmann::json& config)>& quantization) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        throw base::BadInput(fmt::format("{}: cannot be made: {}; give another folder", folder, error.message()));
    }
    writer.write(folder);
    nlohmann::json config = nlohmann::json::parse(source.configText);
    quantization(config);
    if (model.options().widen) {
        config[config.contains("torch_dtype") ? "torch_dtype" : "dtype"] = "float32";
    }
    if (!source.folder.empty()) {
        copySmallFiles(source.folder, folder);
    }
    writeTextFile((fs::path(folder) / "config.json").string(), config.dump(2) + "\n");
}

/// Whether all copies are packed as the model's files have their weights.
bool packsAsModel(const PackedCopies& copies) {
    for (std::size_t i = 0; i < copies.size(); ++i) {
        if (copies.target(i).packing) {
            return false;
        }
    }
    return true;
}

constexpr const char* kQuantizationField = "quantization_config";

/// Throws Unsupported where models of the family are not read with weights that are packed so.
void requireReadable(const nlohmann::json& config, const ModelSource& source) {
    try {
        knownConfigFields(config, source.name);
    } catch (const base::Error&) {
        throw base::Unsupported(fmt::format("merge: {} models have no layout in files for weights that are packed so; "
                                            "choose bf16, or leave merge out",
                                            config.value("model_type", source.name)));
    }
}

void setQuantization(nlohmann::json& config, const ModelSource& source, const PackedCopies& copies,
                     const ModelWriter& writer) {
    if (!packsAsModel(copies)) {
        config[kQuantizationField] = quantizationConfig(writer.quantization());
        requireReadable(config, source);
    } else if (source.folder.empty() && !config.contains(kQuantizationField)) {
        throw base::BadInput("merge: the model is a GGUF file, and its packed weights have no layout in config.json; "
                             "choose bf16, or load with weights dequantized");
    }
}

} // namespace

std::uint64_t mergedModelBytes(const ModelSource& source, Model& model, WeightFormat packed) {
    return bytesOfAll(ModelWriter(source, model, packed, nullptr, nullptr).tensors());
}

std::uint64_t mergedModelBytes(const ModelSource& source, Model& model, const PackedCopies& copies) {
    const ModelWriter writer(source, model, WeightFormat::Dense, &copies, nullptr);
    nlohmann::json config = nlohmann::json::parse(source.configText);
    setQuantization(config, source, copies, writer);
    return bytesOfAll(writer.tensors());
}

void writeMergedModel(const std::string& folder, const ModelSource& source, Model& model, WeightFormat packed,
                      base::ProgressSink* progress) {
    ModelWriter writer(source, model, packed, nullptr, progress);
    writeModel(folder, source, model, writer, [packed](nlohmann::json& config) {
        if (packed == WeightFormat::Dense) {
            config.erase(kQuantizationField);
        } else if (packed == linearPacking().format) {
            config[kQuantizationField] = quantizationConfig({linearPacking(), {}});
        } else if (!config.contains(kQuantizationField)) {
            config[kQuantizationField] = quantizationConfig(
                {stackPacking(),
                 {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}});
        }
    });
}

void writeMergedModel(const std::string& folder, const ModelSource& source, Model& model, const PackedCopies& copies,
                      base::ProgressSink* progress) {
    ModelWriter writer(source, model, WeightFormat::Dense, &copies, progress);
    writeModel(folder, source, model, writer,
               [&](nlohmann::json& config) { setQuantization(config, source, copies, writer); });
}

} // namespace vitrine::engine
