// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/quantized/packed_copies.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::PackWeight;
using kernels::Shape;
using kernels::Tensor;
using kernels::WeightField;

namespace {

constexpr std::array kFields = {WeightField::Data, WeightField::Scales};

/// What is packed and where to; `out` has no memory yet.
PackWeight packWeightOf(const Model& model, const PackedTarget& target, const TrainedState* state,
                        const Adapter* adapter) {
    const auto parameter = std::ranges::find(model.parameters(), target.weight, &Parameter::name);
    if (parameter == model.parameters().end()) {
        throw base::Internal(fmt::format("PackedCopies: {} is no parameter", target.weight));
    }
    PackWeight out;
    out.x = parameter->view;
    if (target.tensor) {
        out.x = kernels::denseWeight(state->master(*target.tensor), parameter->view.transposed);
        out.values = state->tensors()[*target.tensor].value;
        if (out.x.empty()) {
            throw base::Internal(fmt::format("PackedCopies: {} has no master", target.weight));
        }
    }
    if (target.part) {
        out.adapter = adapter->parts()[*target.part].view;
        out.adapter.dropout = {};
    }
    out.out = packedLayout(target, *parameter, model.config());
    out.type = target.type;
    out.rule = target.rule;
    return out;
}

bool changes(const PackedTarget& target) {
    return target.tensor || target.part;
}

} // namespace

PackedCopies::PackedCopies(Model& model, const std::vector<PackedTarget>& targets, const TrainedState* state,
                           Adapter* adapter, const std::string& role)
    : model_(model), adapter_(adapter), targets_(targets) {
    std::ranges::stable_partition(targets_, changes);
    changing_ = static_cast<std::size_t>(std::ranges::count_if(targets_, changes));
    for (const PackedTarget& target : targets_) {
        weights_.push_back(packWeightOf(model, target, state, adapter));
        if (target.tensor) {
            masters_.push_back({state->master(*target.tensor), state->tensors()[*target.tensor].value});
        }
    }
    turnStored();
    allocate(role);
    attach(true);
}

PackedCopies::~PackedCopies() {
    attach(false);
}

void PackedCopies::turnStored() {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        PackWeight& weight = weights_[i];
        if (!weight.x.transposed) {
            continue;
        }
        turned_.push_back({i, weight.x.data, weight.values});
        weight.x = kernels::denseWeight({nullptr, weight.x.data.dtype, weight.out.shape, {}});
        if (!weight.values.empty()) {
            weight.values = {nullptr, weight.values.dtype, weight.out.shape, {}};
        }
    }
}

void PackedCopies::allocate(const std::string& role) {
    kernels::Context& context = model_.context();
    std::uint64_t bytes = kernels::alignedBytes(kernels::bytesOf(DType::I64, 1));
    std::uint64_t stored = 0, values = 0;
    for (const Turned& turned : turned_) {
        stored = std::max(stored, turned.stored.bytes());
        values = std::max(values, turned.values.bytes());
    }
    bytes += kernels::alignedBytes(stored) + kernels::alignedBytes(values);
    for (PackWeight& weight : weights_) {
        for (const WeightField field : kFields) {
            bytes += kernels::alignedBytes(weight.out.field(field).bytes());
        }
    }
    arena_ = context.memory().reserveArena(bytes, "packed copies");
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        for (const WeightField field : kFields) {
            kernels::TensorView& view = weights_[i].out.field(field);
            tensors_.emplace_back(*arena_, MemoryCategory::Weights, targets_[i].weight + role, view.dtype, view.shape);
            view = tensors_.back().view();
        }
    }
    const auto scratch = [&](const char* name, std::uint64_t size) {
        return size == 0 ? Tensor()
                         : Tensor(*arena_, MemoryCategory::Workspace, name, DType::U8,
                                  Shape{static_cast<std::int64_t>(size)});
    };
    turnedStored_ = scratch("turned weight", stored);
    turnedValues_ = scratch("turned values", values);
    for (const Turned& turned : turned_) {
        PackWeight& weight = weights_[turned.weight];
        weight.x.data.data = turnedStored_.view().data;
        if (!turned.values.empty()) {
            weight.values.data = turnedValues_.view().data;
        }
    }
    changed_ = Tensor(*arena_, MemoryCategory::Other, "codes_changed", DType::I64, Shape{1});
    context.run(kernels::SetZero{changed_.view()});
}

void PackedCopies::refresh() {
    kernels::Context& context = model_.context();
    context.throwIfStopped();
    const kernels::TraceScope scope(context.tracer(), base::ScopeKind::Layer,
                                    adapter_ == nullptr ? "quantize" : "merge");
    context.run(kernels::SetZero{changed_.view()});
    pack(0, changing_, changed_.view());
    ++updates_;
    if (!frozenDone_) {
        pack(changing_, weights_.size(), {});
    }
    frozenDone_ = true;
}

/// Weights that lie as they are packed go together.
void PackedCopies::pack(std::size_t begin, std::size_t end, const kernels::TensorView& changed) {
    kernels::Context& context = model_.context();
    const std::span<const PackWeight> all(weights_);
    const auto run = [&](std::size_t from, std::size_t to) {
        if (from < to) {
            context.run(kernels::PackWeights{all.subspan(from, to - from), changed});
        }
    };
    std::size_t next = begin;
    for (const Turned& turned : turned_) {
        if (turned.weight < begin || turned.weight >= end) {
            continue;
        }
        context.throwIfStopped();
        const PackWeight& weight = weights_[turned.weight];
        run(next, turned.weight);
        context.run(kernels::TransposeCopy{turned.stored, weight.x.data});
        run(turned.weight, turned.weight + 1);
        if (!turned.values.empty()) {
            context.run(kernels::TransposeCopy{weight.values, turned.values});
        }
        next = turned.weight + 1;
    }
    run(next, end);
}

void PackedCopies::attach(bool attached) {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        const PackedTarget& target = targets_[i];
        if (target.part) {
            adapter_->setMerged(*target.part, attached ? weights_[i].out : kernels::WeightView{});
        } else if (!target.tensor) {
            model_.replaceWeight(target.weight, attached ? weights_[i].out : kernels::WeightView{});
        }
    }
    if (adapter_ != nullptr) {
        adapter_->attach(true);
    }
}

void PackedCopies::serve(bool serves) {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (targets_[i].tensor) {
            model_.replaceWeight(targets_[i].weight, serves ? weights_[i].out : kernels::WeightView{});
        }
    }
}

void PackedCopies::showMasters(bool shows) {
    if (!shows) {
        const kernels::StopPause whole(model_.context()); // a run that is stopped is saved
        pack(0, changing_, {});                           // to the same codes
        return;
    }
    for (const Master& master : masters_) {
        model_.context().run(kernels::Cast{master.master, master.value});
    }
}

double PackedCopies::changedShare() const {
    std::int64_t changed = 0, codes = 0;
    model_.context().download(changed_.view().data, &changed, sizeof(changed));
    for (const PackWeight& weight : std::span(weights_).first(changing_)) {
        codes += weight.out.shape.count();
    }
    return codes == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(codes);
}

std::optional<std::size_t> PackedCopies::indexOf(const std::string& weight) const {
    const auto found = std::ranges::find(targets_, weight, &PackedTarget::weight);
    return found == targets_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - targets_.begin()));
}

} // namespace vitrine::engine
