// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/packed_copies.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/error.h"
#include "engine/quant/format_options.h"
#include "engine/quant/matrix_packer.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/context/context.h"
#include "kernels/ops/linear/pack_weight.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::WeightField;
using kernels::WeightView;

namespace {

MatrixSize sizeOf(const Shape& shape) {
    return {shape[shape.rank() - 2], shape[shape.rank() - 1]};
}

/// A packed weight of `shape` whose tensors have no memory yet. Schemes that store experts one by one say the shapes of
/// one of them.
WeightView layoutOf(const WeightPacking& packing, const std::string& name, const Shape& shape, DType type) {
    const bool stack = shape.rank() == 3, whole = packing.scheme == StorageScheme::GptOss;
    const MatrixSize size = sizeOf(shape);
    const Shape one{size.out, size.in};
    WeightView out;
    out.format = packing.format;
    for (const StoredTensor& stored : storedTensors(packing, name, whole ? shape.dims() : one.dims())) {
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
            view.shape = Shape(dims);
        }
    }
    describePacked(packing, shape, size.out, out);
    return out;
}

} // namespace

std::vector<PackedTarget> packedInSource(const ModelConfig& source, const std::vector<TrainedTensor>& tensors) {
    std::map<std::string, WeightPacking> packings;
    for (const TensorSpec& spec : expectedTensors(source)) {
        if (canMergePacked(spec.packing.format)) {
            packings[spec.weight] = spec.packing;
        }
    }
    std::vector<PackedTarget> targets;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (const auto packing = packings.find(tensors[i].name); packing != packings.end()) {
            targets.push_back({i, packing->second, DType::F32});
        }
    }
    return targets;
}

PackedCopies::PackedCopies(Model& model, const TrainedState& state, const std::vector<PackedTarget>& targets)
    : context_(model.context()) {
    for (const PackedTarget& target : targets) {
        addCopy(model, state, target);
    }
    allocate(state, targets);
}

void PackedCopies::addCopy(const Model& model, const TrainedState& state, const PackedTarget& target) {
    const TrainedTensor& tensor = state.tensors()[target.tensor];
    const auto parameter = std::ranges::find(model.parameters(), tensor.name, &Parameter::name);
    Copy copy;
    copy.master = state.master(target.tensor);
    copy.value = tensor.value;
    if (parameter == model.parameters().end() || copy.master.empty()) {
        throw base::Internal(fmt::format("PackedCopies: {} is no parameter with a master", tensor.name));
    }
    if (parameter->view.transposed) {
        throw base::Unsupported(fmt::format("{}: it is stored as (in, out), and groups of inputs lie in rows; convert "
                                            "the model first, or leave the weight out",
                                            tensor.name));
    }
    checkPackable(target.packing, tensor.name, sizeOf(tensor.value.shape));
    copy.packed = layoutOf(target.packing, tensor.name, tensor.value.shape, target.type);
    copy.type = target.type;
    copy.rule = target.packing.rule;
    copies_.push_back(copy);
}

void PackedCopies::allocate(const TrainedState& state, const std::vector<PackedTarget>& targets) {
    std::uint64_t bytes = kernels::alignedBytes(kernels::bytesOf(DType::I64, 1));
    for (const Copy& copy : copies_) {
        bytes += kernels::alignedBytes(copy.packed.data.bytes()) + kernels::alignedBytes(copy.packed.scales.bytes());
    }
    arena_ = context_.memory().reserveArena(bytes, "packed copies");
    for (std::size_t i = 0; i < copies_.size(); ++i) {
        for (const WeightField field : {WeightField::Data, WeightField::Scales}) {
            kernels::TensorView& view = copies_[i].packed.field(field);
            tensors_.emplace_back(*arena_, MemoryCategory::Weights, state.tensors()[targets[i].tensor].name, view.dtype,
                                  view.shape);
            view = tensors_.back().view();
        }
    }
    changed_ = Tensor(*arena_, MemoryCategory::Other, "codes_changed", DType::I64, Shape{1});
    context_.run(kernels::SetZero{changed_.view()});
}

void PackedCopies::refresh() {
    const kernels::TraceScope scope(context_.tracer(), base::ScopeKind::Layer, "quantize");
    context_.run(kernels::SetZero{changed_.view()});
    for (const Copy& copy : copies_) {
        context_.throwIfStopped();
        context_.run(kernels::PackWeight{copy.master, copy.packed, copy.type, copy.rule, changed_.view()});
        context_.run(kernels::Dequantize{copy.packed, copy.value});
    }
}

double PackedCopies::changedShare() const {
    std::int64_t changed = 0, codes = 0;
    context_.download(changed_.view().data, &changed, sizeof(changed));
    for (const Copy& copy : copies_) {
        codes += copy.value.shape.count();
    }
    return codes == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(codes);
}

} // namespace vitrine::engine
