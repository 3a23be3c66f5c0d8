// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which weights have packed copies in quantization-aware training, and what the copies are made of.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/quant/packing.h"
#include "engine/training/adapters/adapter.h"
#include "engine/training/parameters/trained_state.h"
#include "engine/training/quantized/quantized_training.h"

namespace vitrine::engine {

/// A weight with a packed copy. Without a tensor and a part it is packed once.
struct PackedTarget {
    std::string weight;                   ///< Parameter::name
    std::optional<std::size_t> tensor;    ///< of the state, whose master is packed; none: the model's own weight is
    std::optional<std::size_t> part;      ///< of the adapter, which is merged in
    std::optional<WeightPacking> packing; ///< none: as the model's weight is packed
    kernels::IntegerRule rule = kernels::IntegerRule::CompressedTensors;
    kernels::DType type = kernels::DType::F32; ///< what its values are rounded to before (PackWeight)
};

/// The packed weight that a copy is, whose tensors have no memory yet. Throws BadInput "TENSOR: what to do".
kernels::WeightView packedLayout(const PackedTarget& target, const Parameter& parameter, const ModelConfig& config);

/// The trained tensors that the source's files have packed, with its packings, of float32. They get masters. Empty:
/// none is.
std::vector<PackedTarget> packedInSource(const ModelConfig& source, std::vector<TrainedTensor>& tensors);

/// The trained tensors that are quantized; each gets a master. Throws BadInput for one that is to be quantized and is
/// not trained.
std::vector<PackedTarget> masterTargets(const QuantizedTraining& quantized, const Model& model,
                                        std::vector<TrainedTensor>& tensors);

/// Weights of a model that an adapter is trained beside: those that the adapter is merged into (`merges`), and other
/// dense ones that are to be quantized. Weights that are packed so already, or with `anyGroups` in that format, stay as
/// they are. Throws BadInput for one that is packed in another way.
std::vector<PackedTarget> adapterTargetsOf(const QuantizedTraining& quantized, const Model& model,
                                           const Adapter& adapter, bool merges, bool anyGroups);

/// The weights that an adapter is beside and that can be packed again as they are.
std::vector<PackedTarget> packedBesideAdapter(const Model& model, const Adapter& adapter, kernels::IntegerRule rule);

/// How the codes of the model's INT4 weights were rounded: a lowest integer says CompressedTensors, no such integer
/// among the first codes Seven. `said` is what the files say, and stands where nothing is INT4.
kernels::IntegerRule ruleOfCodes(Model& model, kernels::IntegerRule said);

} // namespace vitrine::engine
