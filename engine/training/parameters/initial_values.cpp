// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/parameters/initial_values.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

namespace {

kernels::Buffer hostBuffer(kernels::Context& context, std::uint64_t bytes) {
    return {context.memory().host(),
            bytes,
            {base::MemoryCategory::Weights, "reference", kernels::DType::U8,
             kernels::Shape{static_cast<std::int64_t>(bytes)}}};
}

} // namespace

InitialValues::InitialValues(kernels::Context& context, const TrainedState& state) : context_(context), state_(state) {
    std::uint64_t largest = 0;
    for (const TrainedTensor& tensor : state.tensors()) {
        const std::uint64_t bytes = tensor.value.bytes();
        largest = std::max(largest, bytes);
        kept_.push_back(hostBuffer(context, bytes));
        if (context.can().computesValues) {
            context.download(tensor.value.data, kept_.back().data(), bytes);
        }
    }
    passing_ = hostBuffer(context, largest);
}

void InitialValues::exchange() {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        const kernels::TensorView& value = state_.tensors()[i].value;
        if (!context_.can().computesValues) {
            context_.passCopyTime(2 * static_cast<double>(value.bytes()) / context_.traits().hostToDeviceBandwidth);
            continue;
        }
        context_.download(value.data, passing_.data(), value.bytes());
        context_.upload(kept_[i].data(), value.data, value.bytes());
        context_.synchronize(); // it has read the buffer
        std::memcpy(kept_[i].data(), passing_.data(), value.bytes());
    }
}

InitialPause::~InitialPause() {
    try {
        values_.exchange();
    } catch (const base::Error&) {
        // The device is lost: nothing computes with the values any more.
    }
}

} // namespace vitrine::engine
