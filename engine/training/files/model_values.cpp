// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/files/model_values.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"
#include "kernels/ops/experts/grouped_products.h"
#include "kernels/ops/linear/matmul.h"
#include "kernels/ops/linear/matmul_gradients.h"
#include "kernels/ops/linear/weights.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

TensorView matrixOf(const TensorView& tensor, std::int64_t index) {
    if (tensor.shape.rank() < 3) {
        return tensor;
    }
    return kernels::reshaped(kernels::sliceRows(tensor, index, index + 1), Shape{tensor.shape[1], tensor.shape[2]});
}

ModelValues::ModelValues(Model& model)
    : model_(model), runner_(model.context(), model.context().memory().general(), model.options().computeDType) {
    for (const Parameter& parameter : model.parameters()) {
        parameters_[parameter.name] = &parameter;
    }
}

const Parameter& ModelValues::parameter(const std::string& name) const {
    const auto found = parameters_.find(name);
    if (found == parameters_.end()) {
        throw base::Internal(fmt::format("writeMergedModel: the model has no parameter {}", name));
    }
    return *found->second;
}

const kernels::WeightView& ModelValues::weight(const std::string& name) const {
    const kernels::LinearView* linear = model_.decoder().linear(name);
    return linear == nullptr ? parameter(name).view : linear->weight;
}

std::vector<float> ModelValues::values(const std::string& name, std::int64_t expert) const {
    const kernels::WeightView& view = weight(name);
    std::vector<float> out = view.quantized() ? expanded(view, expert) : dense(view, expert);
    const kernels::AdapterView adapter = adapterOf(name);
    if (!adapter.empty()) {
        addDelta(adapter, parameter(name), expert, out);
    }
    return out;
}

kernels::AdapterView ModelValues::adapterOf(const std::string& name) const {
    if (parameter(name).role == ParameterRole::Embedding) {
        return model_.decoder().embeddingAdapter();
    }
    const kernels::LinearView* linear = model_.decoder().linear(name);
    return linear == nullptr ? kernels::AdapterView{} : linear->adapter;
}

std::vector<float> ModelValues::dense(const kernels::WeightView& view, std::int64_t expert) const {
    const TensorView stored = matrixOf(view.data, expert);
    std::vector<float> out = downloadFloats(model_.context(), stored);
    return view.transposed ? transposedMatrix(out, stored.shape[0], stored.shape[1]) : out;
}

std::vector<float> ModelValues::expanded(const kernels::WeightView& view, std::int64_t expert) const {
    const bool stack = view.shape.rank() == 3;
    const kernels::WeightView one = stack ? kernels::sliceExperts(view, expert, expert + 1) : view;
    const Tensor out = runner_.make(MemoryCategory::Workspace, "merge.expanded", DType::BF16, one.shape);
    runner_.run(kernels::Dequantize{one, out.view()});
    return downloadFloats(model_.context(), out.view());
}

void ModelValues::addDelta(const kernels::AdapterView& adapter, const Parameter& parameter, std::int64_t expert,
                           std::vector<float>& values) const {
    const kernels::WeightView& view = parameter.view;
    const Tensor delta = runner_.make(MemoryCategory::Workspace, "merge.delta", DType::F32,
                                      Shape{view.outFeatures(), view.inFeatures()});
    if (parameter.role == ParameterRole::Embedding) {
        kernels::Matmul op; // A^T B^T
        op.x = adapter.a;
        op.weight = kernels::denseWeight(adapter.b);
        op.scale = adapter.scale;
        op.out = delta.view();
        runner_.run(op);
    } else {
        kernels::MatmulInputGradient op; // B A
        op.gradOut = matrixOf(adapter.b, expert);
        op.weight = kernels::denseWeight(matrixOf(adapter.a, expert));
        op.gradX = delta.view();
        op.scale = adapter.scale;
        runner_.run(op);
    }
    const std::vector<float> more = downloadFloats(model_.context(), delta.view());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] += more[i];
    }
}

} // namespace vitrine::engine
