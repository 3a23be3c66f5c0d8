// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/quantized/packed_targets.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <map>

#include "base/error.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/quant/matrix_packer.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/context/context.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::IntegerRule;
using kernels::Shape;
using kernels::WeightField;
using kernels::WeightView;

namespace {

MatrixSize sizeOf(const Shape& shape) {
    return {shape[shape.rank() - 2], shape[shape.rank() - 1]};
}

/// A packed weight of the parameter whose tensors have no memory yet. Schemes that store experts one by one, and gate
/// and up of each, say the shapes of one of these.
WeightView layoutOf(const WeightPacking& packing, const Parameter& parameter, DType type, bool gateBesideUp) {
    const Shape& shape = parameter.view.shape;
    const bool stack = shape.rank() == 3, whole = packing.scheme == StorageScheme::GptOss;
    const std::int64_t matrices = parameter.role == ParameterRole::ExpertGateUp && !whole && gateBesideUp ? 2 : 1;
    const MatrixSize size{sizeOf(shape).out / matrices, sizeOf(shape).in};
    if (const std::int64_t rows = rowGroupOf(packing, size.out); stack && size.out % rows != 0) {
        throw base::BadInput(fmt::format("{}: an expert has {} outputs, which are no whole blocks of {}; choose "
                                         "group_size -1, or leave it out with qat_weights",
                                         parameter.name, size.out, rows));
    }
    const Shape one{size.out, size.in};
    WeightView out;
    out.format = packing.format;
    for (const StoredTensor& stored : storedTensors(packing, parameter.name, whole ? shape.dims() : one.dims())) {
        if (stored.field != WeightField::Data && stored.field != WeightField::Scales) {
            continue;
        }
        kernels::TensorView& view = out.field(stored.field);
        const DType file = stored.memoryType != DType::None ? stored.memoryType : stored.dtype;
        view.dtype = stored.field == WeightField::Scales && file == DType::BF16 ? scaleTypeOf(packing, type) : file;
        view.shape = stored.memoryShape;
        if (stack && !whole) {
            std::vector<std::int64_t> dims{shape[0]};
            const auto rest = stored.memoryShape.dims();
            dims.insert(dims.end(), rest.begin(), rest.end());
            dims[1] *= matrices;
            view.shape = Shape(dims);
        }
    }
    describePacked(packing, shape, size.out, out);
    return out;
}

/// The type that a weight which an adapter is beside is rounded in: that of a saved model.
DType typeOfWeight(const Model& model, const Parameter& parameter) {
    if (model.options().computeDType == DType::F32) {
        return DType::F32;
    }
    return parameter.view.quantized() ? typeOfPacked(parameter.view, model.options().computeDType)
                                      : parameter.view.data.dtype;
}

std::optional<std::size_t> partOf(const Adapter& adapter, const std::string& weight) {
    const auto found = std::ranges::find(adapter.parts(), weight, &AdapterPart::parameter);
    return found == adapter.parts().end() ? std::nullopt
                                          : std::optional(static_cast<std::size_t>(found - adapter.parts().begin()));
}

bool packsAgain(const WeightView& weight) {
    return canPackAgain(weight.format) && weight.zeros.empty() && weight.order.empty();
}

/// Whether a packed weight is packed as `packing` says, or in groups of another size.
bool isPackedSo(const WeightView& weight, const WeightPacking& packing, bool anyGroups) {
    const bool groups = weight.group == groupOf(packing, weight.inFeatures()) &&
                        weight.rowGroup == rowGroupOf(packing, weight.outFeatures());
    return weight.format == packing.format && packsAgain(weight) && (anyGroups || groups);
}

} // namespace

WeightView packedLayout(const PackedTarget& target, const Parameter& parameter, const ModelConfig& config) {
    if (target.packing) {
        checkPackable(*target.packing, target.weight, sizeOf(parameter.view.shape), "qat_weights");
        // Rows of gate and up take turns in gpt_oss.
        return layoutOf(*target.packing, parameter, target.type, config.family != Family::GptOss);
    }
    WeightView out = parameter.view;
    for (const WeightField field : {WeightField::Data, WeightField::Scales}) {
        out.field(field).data = nullptr;
    }
    if (hasGroups(formatName(out.format))) {
        out.scales.dtype = target.type;
    }
    return out;
}

std::vector<PackedTarget> packedInSource(const ModelConfig& source, std::vector<TrainedTensor>& tensors) {
    std::map<std::string, WeightPacking> packings;
    for (const TensorSpec& spec : expectedTensors(source)) {
        if (canMergePacked(spec.packing.format)) {
            packings[spec.weight] = spec.packing;
        }
    }
    std::vector<PackedTarget> targets;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (const auto packing = packings.find(tensors[i].name); packing != packings.end()) {
            tensors[i].hasMaster = true;
            targets.push_back({tensors[i].name, i, std::nullopt, packing->second, packing->second.rule, DType::F32});
        }
    }
    return targets;
}

std::vector<PackedTarget> masterTargets(const QuantizedTraining& quantized, const Model& model,
                                        std::vector<TrainedTensor>& tensors) {
    std::vector<PackedTarget> targets;
    for (const Parameter& parameter : model.parameters()) {
        if (!quantized.covers(parameter)) {
            continue;
        }
        const auto tensor = std::ranges::find(tensors, parameter.name, &TrainedTensor::name);
        if (tensor == tensors.end()) {
            throw base::BadInput(fmt::format("qat_weights: {} is to be quantized, but it is not trained; name it in "
                                             "train too, or leave it out",
                                             parameter.name));
        }
        tensor->hasMaster = true;
        targets.push_back({parameter.name, static_cast<std::size_t>(tensor - tensors.begin()), std::nullopt,
                           quantized.packing(), quantized.packing().rule, parameter.view.data.dtype});
    }
    return targets;
}

std::vector<PackedTarget> adapterTargetsOf(const QuantizedTraining& quantized, const Model& model,
                                           const Adapter& adapter, bool merges, bool anyGroups) {
    std::vector<PackedTarget> targets;
    for (const Parameter& parameter : model.parameters()) {
        if (!quantized.covers(parameter)) {
            continue;
        }
        PackedTarget target;
        target.weight = parameter.name;
        target.part = merges ? partOf(adapter, parameter.name) : std::nullopt;
        target.rule = quantized.packing().rule;
        target.type = typeOfWeight(model, parameter);
        if (!parameter.view.quantized()) {
            target.packing = quantized.packing();
        } else if (!isPackedSo(parameter.view, quantized.packing(), anyGroups)) {
            if (!packsAgain(parameter.view)) {
                throw base::BadInput(fmt::format("qat: {} is packed already, as {}, which is not trained so; load with "
                                                 "weights dequantized",
                                                 parameter.name, formatName(parameter.view.format)));
            }
            throw base::BadInput(fmt::format("qat: {} is packed already, as {} in groups of {}; choose that format "
                                             "and group_size, or load with weights dequantized",
                                             parameter.name, formatName(parameter.view.format), parameter.view.group));
        } else if (!target.part) {
            continue;
        }
        targets.push_back(std::move(target));
    }
    return targets;
}

std::vector<PackedTarget> packedBesideAdapter(const Model& model, const Adapter& adapter, IntegerRule rule) {
    std::vector<PackedTarget> targets;
    for (const Parameter& parameter : model.parameters()) {
        const auto part = partOf(adapter, parameter.name);
        if (!part || parameter.bias || !packsAgain(parameter.view)) {
            continue;
        }
        targets.push_back({parameter.name, std::nullopt, part, std::nullopt, rule, typeOfWeight(model, parameter)});
    }
    return targets;
}

IntegerRule ruleOfCodes(Model& model, IntegerRule said) {
    if (said == IntegerRule::Seven || !model.context().can().computesValues) {
        return said;
    }
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
    for (const Parameter& parameter : model.parameters()) {
        if (!hasGroups(formatName(parameter.view.format)) || !packsAgain(parameter.view)) {
            continue;
        }
        std::vector<std::uint8_t> bytes(std::min(kBytes, parameter.view.data.bytes()));
        model.context().download(parameter.view.data.data, bytes.data(), bytes.size());
        const bool lowest =
            std::ranges::any_of(bytes, [](std::uint8_t pair) { return (pair & 0x0FU) == 0 || (pair & 0xF0U) == 0; });
        return lowest ? IntegerRule::CompressedTensors : IntegerRule::Seven;
    }
    return said;
}

} // namespace vitrine::engine
