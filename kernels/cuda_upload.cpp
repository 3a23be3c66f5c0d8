// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <mutex>

#include "kernels/cuda_device.h"

namespace vitrine::kernels {

namespace {

constexpr std::size_t kBuffersPerWorker = 2; ///< one is read into while the other is copied

struct Slot {
    Buffer memory;
    CUevent copied = nullptr;
};

struct Worker {
    CUstream stream = nullptr;
    std::array<Slot, kBuffersPerWorker> slots;
    std::size_t next = 0;
};

} // namespace

struct CudaUpload::State {
    State(std::shared_ptr<CudaDevice> owner, std::uint64_t bytes) : device(std::move(owner)), bufferBytes(bytes) {}

    std::shared_ptr<CudaDevice> device;
    std::uint64_t bufferBytes;
    std::vector<Worker> workers;
    std::mutex faultMutex; ///< a fault is noted by one thread at a time

    ~State() {
        const CudaDriver& driver = device->driver();
        for (Worker& worker : workers) {
            if (worker.stream != nullptr) {
                // Buffers must not go while the device reads them.
                driver.cuStreamSynchronize(worker.stream);
                driver.cuStreamDestroy(worker.stream);
            }
            for (Slot& slot : worker.slots) {
                if (slot.copied != nullptr) {
                    driver.cuEventDestroy(slot.copied);
                }
            }
        }
    }
    void check(CUresult code, const char* call) {
        if (code != CUDA_SUCCESS) {
            const std::lock_guard lock(faultMutex);
            device->check(code, call);
        }
    }
};

CudaUpload::CudaUpload(CudaContext& context, MemoryResource& pinned, int workers, std::uint64_t bufferBytes)
    : state_(std::make_unique<State>(context.sharedDevice(), bufferBytes)) {
    const CudaDriver& driver = state_->device->driver();
    state_->workers.resize(static_cast<std::size_t>(workers));
    for (Worker& worker : state_->workers) {
        state_->check(driver.cuStreamCreate(&worker.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        for (Slot& slot : worker.slots) {
            slot.memory = Buffer(pinned, bufferBytes, {base::MemoryCategory::Workspace, "load.pinned", DType::U8, {}});
            state_->check(driver.cuEventCreate(&slot.copied, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        }
    }
}

CudaUpload::~CudaUpload() = default;

std::uint64_t CudaUpload::bufferBytes() const {
    return state_->bufferBytes;
}

void* CudaUpload::buffer(int worker) {
    Worker& own = state_->workers[static_cast<std::size_t>(worker)];
    state_->device->makeCurrent();
    Slot& slot = own.slots[own.next % kBuffersPerWorker];
    state_->check(state_->device->driver().cuEventSynchronize(slot.copied), "cuEventSynchronize");
    return slot.memory.data();
}

void CudaUpload::send(int worker, void* device, std::uint64_t bytes) {
    Worker& own = state_->workers[static_cast<std::size_t>(worker)];
    const CudaDriver& driver = state_->device->driver();
    const Slot& slot = own.slots[own.next++ % kBuffersPerWorker];
    state_->check(
        driver.cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(device), slot.memory.data(), bytes, own.stream),
        "cuMemcpyHtoDAsync");
    state_->check(driver.cuEventRecord(slot.copied, own.stream), "cuEventRecord");
}

void CudaUpload::finish() {
    for (Worker& worker : state_->workers) {
        state_->check(state_->device->driver().cuStreamSynchronize(worker.stream), "cuStreamSynchronize");
    }
}

} // namespace vitrine::kernels
