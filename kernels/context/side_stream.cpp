// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/context/side_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/context/context.h"
#include "kernels/context/meta_context.h"

namespace vitrine::kernels {

SideStream::SideStream(Context& context) : context_(context) {
    if (CudaContext* gpu = context.cuda()) {
        cuda_ = std::make_unique<CudaSideStream>(*gpu);
    }
}

SideStream::~SideStream() = default;

SideStream::Point SideStream::point() {
    Point out;
    out.time = time_;
    if (cuda_ != nullptr) {
        out.event = cuda_->record();
    }
    return out;
}

SideStream::Point SideStream::pointOfOps() {
    Point out;
    if (MetaContext* meta = context_.meta()) {
        out.time = meta->opsEnd();
    } else if (CudaContext* gpu = context_.cuda()) {
        out.event = gpu->record();
    }
    return out;
}

void SideStream::after(const Point& point) {
    time_ = std::max(time_, point.time);
    if (cuda_ != nullptr) {
        cuda_->waitFor(point.event);
    }
}

void SideStream::opsAfter(const Point& point) {
    if (MetaContext* meta = context_.meta()) {
        meta->holdOps(point.time);
    } else if (cuda_ != nullptr) {
        cuda_->computeWaitsFor(point.event);
    }
}

/// True on Meta, where a copy takes its time from the moment on at which the host asks for it.
bool SideStream::copyOnMeta(std::uint64_t bytes) {
    MetaContext* const meta = context_.meta();
    if (meta != nullptr) {
        const double seconds = static_cast<double>(bytes) / context_.traits().hostToDeviceBandwidth;
        time_ =
            std::max(time_, std::min(asked_, meta->opsEnd())) + static_cast<base::TimeNs>(std::llround(seconds * 1e9));
    }
    return meta != nullptr;
}

void SideStream::toHost(const void* device, void* host, std::uint64_t bytes) {
    if (copyOnMeta(bytes)) {
        return;
    }
    cuda_ != nullptr ? cuda_->copyToHost(device, host, bytes) : static_cast<void>(std::memcpy(host, device, bytes));
}

void SideStream::toDevice(const void* host, void* device, std::uint64_t bytes) {
    if (copyOnMeta(bytes)) {
        return;
    }
    cuda_ != nullptr ? cuda_->copyToDevice(host, device, bytes) : static_cast<void>(std::memcpy(device, host, bytes));
}

} // namespace vitrine::kernels
