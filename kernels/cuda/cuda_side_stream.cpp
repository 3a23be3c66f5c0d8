// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/cuda_side_stream.h"

#include "kernels/cuda/cuda_device.h"

namespace vitrine::kernels {

struct CudaSideStream::State {
    explicit State(std::shared_ptr<CudaDevice> owner) : device(std::move(owner)) {
        device->check(device->driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    ~State() {
        device->makeCurrent();
        device->driver().cuStreamSynchronize(stream);
        device->driver().cuStreamDestroy(stream);
    }
    State(const State&) = delete; // owns a stream
    State& operator=(const State&) = delete;

    void wait(CUstream waits, void* event) const {
        if (event != nullptr) {
            device->check(device->driver().cuStreamWaitEvent(waits, static_cast<CUevent>(event), 0),
                          "cuStreamWaitEvent");
        }
    }

    std::shared_ptr<CudaDevice> device;
    CUstream stream = nullptr;
};

CudaSideStream::CudaSideStream(CudaContext& context) : state_(std::make_unique<State>(context.sharedDevice())) {}
CudaSideStream::~CudaSideStream() = default;

void CudaSideStream::copyToHost(const void* device, void* host, std::uint64_t bytes) {
    state_->device->check(
        state_->device->driver().cuMemcpyDtoHAsync(host, reinterpret_cast<CUdeviceptr>(device), bytes, state_->stream),
        "cuMemcpyDtoHAsync");
}

void CudaSideStream::copyToDevice(const void* host, void* device, std::uint64_t bytes) {
    state_->device->check(
        state_->device->driver().cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(device), host, bytes, state_->stream),
        "cuMemcpyHtoDAsync");
}

CudaEvent CudaSideStream::record() {
    return CudaEvent::recordOn(state_->device, state_->stream);
}

void CudaSideStream::waitFor(const CudaEvent& event) {
    state_->wait(state_->stream, event.handle());
}

void CudaSideStream::computeWaitsFor(const CudaEvent& event) {
    state_->wait(state_->device->compute(), event.handle());
}

} // namespace vitrine::kernels
