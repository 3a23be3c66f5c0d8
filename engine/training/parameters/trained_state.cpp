// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/parameters/trained_state.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "engine/model/op_runner.h"
#include "kernels/core/floats.h"
#include "kernels/formats/dynamic_map.h"
#include "kernels/ops/optimizer/adamw.h"
#include "kernels/ops/optimizer/adamw_8bit.h"
#include "kernels/ops/optimizer/gradient_norm.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;

namespace {

TensorView flatView(const TensorView& tensor, std::int64_t count) {
    return {tensor.data, tensor.dtype, Shape{count}, {}};
}

bool isNarrow(DType dtype) {
    return kernels::bitsOf(dtype) < kernels::bitsOf(DType::F32);
}

bool needsMaster(const TrainedTensor& tensor) {
    return tensor.hasMaster || isNarrow(tensor.value.dtype);
}

void* advanced(void* data, std::uint64_t bytes) {
    return static_cast<std::byte*>(data) + bytes;
}

} // namespace

TrainedState::TrainedState(kernels::Context& context, std::vector<TrainedTensor> tensors,
                           const OptimizerOptions& options)
    : context_(context), tensors_(std::move(tensors)), options_(options) {
    if (tensors_.empty()) {
        throw base::BadInput("train: no parameter is chosen; choose some that the model has");
    }
    for (const TrainedTensor& tensor : tensors_) {
        offsets_.push_back(padded_);
        padded_ += paddedCount(tensor.value.shape.count());
    }
    makeState();
    makeRuns();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const TensorView& value = tensors_[i].value;
        TensorView gradient = part(gradients_, offsets_[i], value.shape.count());
        gradient.shape = value.shape;
        map_.add(value, gradient);
    }
}

std::int64_t TrainedState::elements() const {
    std::int64_t sum = 0;
    for (const TrainedTensor& tensor : tensors_) {
        sum += tensor.value.shape.count();
    }
    return sum;
}

TensorView TrainedState::master(std::size_t tensor) const {
    const TensorView& value = tensors_[tensor].value;
    if (!needsMaster(tensors_[tensor])) {
        return {};
    }
    TensorView out = part(masters_, offsets_[tensor], value.shape.count());
    out.shape = value.shape;
    return out;
}

void TrainedState::makeState() {
    const bool wide = tensors_.front().value.dtype == DType::F64;
    const DType type = wide ? DType::F64 : DType::F32;
    const bool masters = std::ranges::any_of(tensors_, needsMaster);
    const bool bytes = options_.kind == OptimizerKind::AdamW8Bit;
    const std::int64_t blocks = kernels::adamW8BitBlocks(padded_);
    struct Wanted {
        Tensor* tensor;
        MemoryCategory category;
        const char* name;
        DType dtype;
        std::int64_t count;
    };
    std::vector<Wanted> wanted = {
        {&gradients_, MemoryCategory::Gradients, "gradients", type, padded_},
        {&moment1_, MemoryCategory::Optimizer, "moment1", bytes ? DType::U8 : type, padded_},
        {&moment2_, MemoryCategory::Optimizer, "moment2", bytes ? DType::U8 : type, padded_},
        {&squaredNorm_, MemoryCategory::Optimizer, "gradients.squared_norm", DType::F64, 1},
        {&gradScale_, MemoryCategory::Optimizer, "gradients.scale", DType::F32, 1},
    };
    if (masters) {
        wanted.push_back({&masters_, MemoryCategory::Optimizer, "master", DType::F32, padded_});
    }
    if (bytes) {
        wanted.push_back({&absmax1_, MemoryCategory::Optimizer, "absmax1", DType::F32, blocks});
        wanted.push_back({&absmax2_, MemoryCategory::Optimizer, "absmax2", DType::F32, blocks});
        wanted.push_back({&maps_, MemoryCategory::Optimizer, "moment.maps", DType::F32, 512});
    }
    std::uint64_t total = 0;
    for (const Wanted& each : wanted) {
        total += kernels::alignedBytes(kernels::bytesOf(each.dtype, each.count));
    }
    arena_ = context_.memory().reserveArena(total, "optimizer");
    for (const Wanted& each : wanted) {
        *each.tensor = Tensor(*arena_, each.category, each.name, each.dtype, Shape{each.count});
        context_.run(kernels::SetZero{each.tensor->view()});
    }
    if (bytes) {
        const std::array maps = {kernels::signedDynamicMap(), kernels::unsignedDynamicMap()};
        context_.upload(maps.data(), maps_.view().data, maps_.view().bytes());
    }
}

TensorView TrainedState::part(const Tensor& flat, std::int64_t offset, std::int64_t count) const {
    if (flat.empty()) {
        return {};
    }
    const TensorView& view = flat.view();
    return {advanced(view.data, kernels::bytesOf(view.dtype, offset)), view.dtype, Shape{count}, {}};
}

void TrainedState::makeRuns() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const TensorView& value = tensors_[i].value;
        const std::int64_t count = value.shape.count();
        if (!runs_.empty()) {
            Run& last = runs_.back();
            const std::int64_t gap = offsets_[i] - last.offset;
            if (last.value.dtype == value.dtype && last.hasMaster == needsMaster(tensors_[i]) &&
                advanced(last.value.data, kernels::bytesOf(value.dtype, gap)) == value.data) {
                last.count = gap + count;
                continue;
            }
        }
        runs_.push_back({value, {}, offsets_[i], count, needsMaster(tensors_[i])});
    }
    for (Run& run : runs_) {
        run.value = flatView(run.value, run.count);
        if (run.hasMaster) {
            run.master = part(masters_, run.offset, run.count);
            context_.run(kernels::Cast{run.value, run.master});
        }
    }
}

void TrainedState::zeroGradients() {
    context_.run(kernels::SetZero{gradients_.view()});
}

template <class Op> void TrainedState::updateRun(Op op, const Run& run, double learningRate, std::int64_t step) const {
    op.parameter = run.value;
    op.master = run.master;
    op.gradient = part(gradients_, run.offset, run.count);
    op.gradScale = gradScale_.view();
    op.learningRate = learningRate;
    op.beta1 = options_.beta1;
    op.beta2 = options_.beta2;
    op.epsilon = options_.epsilon;
    op.weightDecay = options_.weightDecay;
    op.step = step;
    if constexpr (std::is_same_v<Op, kernels::AdamW>) {
        op.moment1 = part(moment1_, run.offset, run.count);
        op.moment2 = part(moment2_, run.offset, run.count);
    } else {
        const std::int64_t blocks = kernels::adamW8BitBlocks(run.count);
        op.code1 = part(moment1_, run.offset, run.count);
        op.code2 = part(moment2_, run.offset, run.count);
        op.absmax1 = part(absmax1_, run.offset / kernels::kAdamW8BitBlock, blocks);
        op.absmax2 = part(absmax2_, run.offset / kernels::kAdamW8BitBlock, blocks);
        op.maps = kernels::reshaped(maps_.view(), Shape{2, 256});
    }
    context_.run(op);
}

void TrainedState::update(double learningRate, std::int64_t step, const TensorView& norm) {
    const OpRunner runner(context_, context_.memory().general(), DType::F32);
    runner.run(kernels::SquaredNorm{gradients_.view(), squaredNorm_.view(), false, {}});
    runner.run(kernels::ClipScale{squaredNorm_.view(), static_cast<float>(options_.clipNorm), gradScale_.view(), norm});
    for (const Run& run : runs_) {
        if (options_.kind == OptimizerKind::AdamW) {
            updateRun(kernels::AdamW(), run, learningRate, step);
        } else {
            updateRun(kernels::AdamW8Bit(), run, learningRate, step);
        }
    }
}

std::vector<TrainedState::Piece> TrainedState::pieces() const {
    std::vector<Piece> out;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        if (runs_[i].master.empty()) {
            out.push_back({"value." + std::to_string(i), runs_[i].value});
        }
    }
    const std::vector<std::pair<const char*, const Tensor*>> flats = {{"master", &masters_},
                                                                      {"moment1", &moment1_},
                                                                      {"moment2", &moment2_},
                                                                      {"absmax1", &absmax1_},
                                                                      {"absmax2", &absmax2_}};
    for (const auto& [name, tensor] : flats) {
        if (!tensor->empty()) {
            out.push_back({name, tensor->view()});
        }
    }
    return out;
}

void TrainedState::valuesFromMasters() {
    for (const Run& run : runs_) {
        if (!run.master.empty()) {
            context_.run(kernels::Cast{run.master, run.value});
        }
    }
}

} // namespace vitrine::engine
