// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/cuda_upload.h"

#include <array>
#include <mutex>

#include "kernels/cuda/cuda_device.h"

namespace vitrine::kernels {

namespace {

struct UploadBuffer {
    std::byte* memory = nullptr;
    CUevent begin = nullptr;
    CUevent end = nullptr;
    bool used = false;
    std::uint64_t tag = 0;
};

struct Worker {
    CUstream stream = nullptr;
    CUevent joined = nullptr;
    std::array<UploadBuffer, CudaUpload::kBuffersPerWorker> buffers;
    std::size_t next = 0;
};

} // namespace

struct CudaUpload::State {
    State(std::shared_ptr<CudaDevice> owner, std::uint64_t bytes) : device(std::move(owner)), bufferBytes(bytes) {}

    std::shared_ptr<CudaDevice> device;
    std::uint64_t bufferBytes;
    Buffer memory; ///< one allocation: pinning costs by the call, too
    CUevent origin = nullptr;
    CUevent computed = nullptr;
    std::vector<Worker> workers;
    std::mutex mutex; ///< of `copied`, and of a fault, which one thread notes
    std::vector<Copied> copied;

    ~State() {
        const CudaDriver& driver = device->driver();
        device->makeCurrent();
        for (Worker& worker : workers) {
            if (worker.stream != nullptr) {
                // Buffers must not go while the device reads them.
                driver.cuStreamSynchronize(worker.stream);
                driver.cuStreamDestroy(worker.stream);
            }
            destroy(worker.joined);
            for (UploadBuffer& buffer : worker.buffers) {
                destroy(buffer.begin);
                destroy(buffer.end);
            }
        }
        destroy(origin);
        destroy(computed);
    }
    void destroy(CUevent event) const {
        if (event != nullptr) {
            device->driver().cuEventDestroy(event);
        }
    }
    void check(CUresult code, const char* call) {
        if (code != CUDA_SUCCESS) {
            const std::lock_guard lock(mutex);
            device->check(code, call);
        }
    }
    CUevent makeEvent(unsigned flags) {
        CUevent event = nullptr;
        check(device->driver().cuEventCreate(&event, flags), "cuEventCreate");
        return event;
    }
    /// Waits for the buffer's copy and notes when it was.
    void retire(UploadBuffer& buffer) {
        if (!buffer.used) {
            return;
        }
        const CudaDriver& driver = device->driver();
        check(driver.cuEventSynchronize(buffer.end), "cuEventSynchronize");
        buffer.used = false;
        float begin = 0;
        float end = 0;
        check(driver.cuEventElapsedTime(&begin, origin, buffer.begin), "cuEventElapsedTime");
        check(driver.cuEventElapsedTime(&end, origin, buffer.end), "cuEventElapsedTime");
        const std::lock_guard lock(mutex);
        copied.push_back({buffer.tag, static_cast<double>(begin) * 1e-3, static_cast<double>(end) * 1e-3});
    }
};

CudaUpload::CudaUpload(CudaContext& context, MemoryResource& pinned, int workers, std::uint64_t bufferBytes)
    : state_(std::make_unique<State>(context.sharedDevice(), bufferBytes)) {
    State& state = *state_;
    const CudaDriver& driver = state.device->driver();
    const std::uint64_t buffers = static_cast<std::uint64_t>(workers) * kBuffersPerWorker;
    state.memory =
        Buffer(pinned, buffers * bufferBytes, {base::MemoryCategory::Workspace, "load.pinned", DType::U8, {}});
    auto* memory = static_cast<std::byte*>(state.memory.data());
    state.workers.resize(static_cast<std::size_t>(workers));
    for (Worker& worker : state.workers) {
        state.check(driver.cuStreamCreate(&worker.stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        worker.joined = state.makeEvent(CU_EVENT_DISABLE_TIMING);
        for (UploadBuffer& buffer : worker.buffers) {
            buffer.memory = memory;
            memory += bufferBytes;
            buffer.begin = state.makeEvent(CU_EVENT_DEFAULT);
            buffer.end = state.makeEvent(CU_EVENT_DEFAULT);
        }
    }
    state.computed = state.makeEvent(CU_EVENT_DISABLE_TIMING);
    state.origin = state.makeEvent(CU_EVENT_DEFAULT);
    state.check(driver.cuEventRecord(state.origin, state.device->copy()), "cuEventRecord");
    state.check(driver.cuEventSynchronize(state.origin), "cuEventSynchronize");
}

CudaUpload::~CudaUpload() = default;

std::uint64_t CudaUpload::bufferBytes() const {
    return state_->bufferBytes;
}

void* CudaUpload::buffer(int worker) {
    Worker& own = state_->workers[static_cast<std::size_t>(worker)];
    state_->device->makeCurrent();
    UploadBuffer& buffer = own.buffers[own.next % kBuffersPerWorker];
    state_->retire(buffer);
    return buffer.memory;
}

void CudaUpload::send(int worker, const void* from, void* device, std::uint64_t bytes, std::uint64_t tag) {
    Worker& own = state_->workers[static_cast<std::size_t>(worker)];
    const CudaDriver& driver = state_->device->driver();
    UploadBuffer& buffer = own.buffers[own.next++ % kBuffersPerWorker];
    state_->check(driver.cuEventRecord(buffer.begin, own.stream), "cuEventRecord");
    state_->check(driver.cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(device), from, bytes, own.stream),
                  "cuMemcpyHtoDAsync");
    state_->check(driver.cuEventRecord(buffer.end, own.stream), "cuEventRecord");
    buffer.used = true;
    buffer.tag = tag;
}

void CudaUpload::beforeCompute() {
    const CudaDriver& driver = state_->device->driver();
    for (Worker& worker : state_->workers) {
        state_->check(driver.cuEventRecord(worker.joined, worker.stream), "cuEventRecord");
        state_->check(driver.cuStreamWaitEvent(state_->device->compute(), worker.joined, 0), "cuStreamWaitEvent");
    }
}

void CudaUpload::afterCompute() {
    const CudaDriver& driver = state_->device->driver();
    state_->check(driver.cuEventRecord(state_->computed, state_->device->compute()), "cuEventRecord");
    for (Worker& worker : state_->workers) {
        state_->check(driver.cuStreamWaitEvent(worker.stream, state_->computed, 0), "cuStreamWaitEvent");
    }
}

std::vector<CudaUpload::Copied> CudaUpload::takeCopied() {
    std::vector<Copied> out;
    const std::lock_guard lock(state_->mutex);
    out.swap(state_->copied);
    return out;
}

void CudaUpload::finish() {
    for (Worker& worker : state_->workers) {
        state_->check(state_->device->driver().cuStreamSynchronize(worker.stream), "cuStreamSynchronize");
        for (UploadBuffer& buffer : worker.buffers) {
            state_->retire(buffer);
        }
    }
}

} // namespace vitrine::kernels
