// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/activation_store.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::SideStream;
using kernels::Tensor;

namespace {

constexpr std::size_t kLeaving = 1; ///< copies to the host that may be under way beside the one that begins

} // namespace

SideStream& ActivationStore::stream() {
    if (stream_ == nullptr) {
        stream_ = std::make_unique<SideStream>(context_);
    }
    return *stream_;
}

bool ActivationStore::hostRoom(std::size_t index, std::uint64_t bytes) {
    if (host_.size() <= index) {
        host_.resize(index + 1);
    }
    kernels::Buffer& buffer = host_[index];
    if (buffer.bytes() >= bytes) {
        return true;
    }
    buffer.reset();
    try {
        buffer = kernels::Buffer(context_.memory().host(), bytes,
                                 {MemoryCategory::Activations, "checkpoint", kernels::DType::U8,
                                  kernels::Shape{static_cast<std::int64_t>(bytes)}});
    } catch (const base::OutOfMemory&) {
        return false;
    }
    return true;
}

void ActivationStore::release(std::size_t keep) {
    while (leaving_.size() > keep) {
        // Ops that come later may get its memory.
        stream().opsAfter(leaving_.front().gone);
        leaving_.pop_front();
    }
}

void ActivationStore::put(std::size_t index, Tensor tensor, bool offload) {
    if (entries_.size() <= index) {
        entries_.resize(index + 1);
    }
    Entry& entry = entries_[index];
    entry = {};
    entry.shape = tensor.view().shape;
    if (!offload) {
        entry.device = std::move(tensor);
        return;
    }
    if (!hostRoom(index, tensor.view().bytes())) {
        ++refused_;
        entry.device = std::move(tensor);
        return;
    }
    release(kLeaving);
    SideStream& side = stream();
    side.after(side.pointOfOps());
    side.toHost(tensor.view().data, host_[index].data(), tensor.view().bytes());
    entry.onHost = true;
    leaving_.push_back({std::move(tensor), side.point()});
}

void ActivationStore::prefetch(const OpRunner& runner, std::size_t index) {
    Entry& entry = entries_.at(index);
    if (!entry.onHost || !entry.device.empty()) {
        return;
    }
    release(0);
    entry.device = runner.activation("checkpoint", entry.shape);
    SideStream& side = stream();
    // The memory may be that of ops under way.
    side.after(side.pointOfOps());
    side.toDevice(host_[index].data(), entry.device.view().data, entry.device.view().bytes());
    entry.arrived = side.point();
}

Tensor ActivationStore::take(const OpRunner& runner, std::size_t index) {
    prefetch(runner, index);
    Entry& entry = entries_.at(index);
    if (entry.onHost) {
        stream().opsAfter(entry.arrived);
        entry.onHost = false;
    }
    return std::exchange(entry.device, Tensor());
}

void ActivationStore::clear() {
    release(0);
    entries_.clear();
}

} // namespace vitrine::engine
