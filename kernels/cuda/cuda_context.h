// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The NVIDIA backend: one device's primary context, a compute and a copy stream, the kernel library, and CUDA graphs.
//
// Declared in every build. Without CUDA headers (or without a driver) making one throws Unsupported that says what is
// missing. Driver API only; nothing of CUDA is linked. A context belongs to the thread that made it; copies of the
// loader's threads go through their own streams.
// Errors of the device are sticky: after an illegal address every call throws DeviceFault that names the last kernels
// launched, and the process has to be started anew.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/trace.h"
#include "kernels/core/device_traits.h"

namespace vitrine::kernels {

class CudaDevice;
class KernelLibrary;
struct CudaOptions;
struct KernelCall;
struct KernelLibraryOptions;
class MemoryResource;

struct CudaDeviceInfo {
    int ordinal = 0;
    std::string name;
    std::string pciBusId;
    int major = 0, minor = 0;
    int multiprocessors = 0;
    std::uint64_t memoryBytes = 0;
    std::int64_t sharedPerBlock = 0;
    std::int64_t l2Bytes = 0;
};

/// Devices of this machine; empty without a driver. Never throws for what is missing.
std::vector<CudaDeviceInfo> cudaDevices();
/// One sentence: why this machine runs nothing on CUDA (no driver, device or compiler); empty where it does.
std::string whyNoCuda();

/// A captured stretch of work. Replayed on the compute stream.
class CudaGraph {
public:
    CudaGraph();
    ~CudaGraph();
    CudaGraph(CudaGraph&&) noexcept;
    CudaGraph& operator=(CudaGraph&&) noexcept;
    CudaGraph(const CudaGraph&) = delete; // owns a graph
    CudaGraph& operator=(const CudaGraph&) = delete;
    bool empty() const;

private:
    friend class CudaContext;
    struct State;
    std::unique_ptr<State> state_;
};

/// A point on a stream.
class CudaEvent {
public:
    CudaEvent();
    ~CudaEvent();
    CudaEvent(CudaEvent&&) noexcept;
    CudaEvent& operator=(CudaEvent&&) noexcept;
    CudaEvent(const CudaEvent&) = delete; // owns an event
    CudaEvent& operator=(const CudaEvent&) = delete;
    /// Waits on the host; throws DeviceFault.
    void wait() const;
    bool done() const;
    /// Device time between two recorded events, seconds; waits for this one.
    double secondsSince(const CudaEvent& earlier) const;

private:
    friend class CudaContext;
    friend class CudaSideStream;
    static CudaEvent recordOn(const std::shared_ptr<CudaDevice>& device, void* stream);
    void* handle() const; ///< the CUevent, null where nothing was recorded

    struct State;
    std::unique_ptr<State> state_;
};

class CudaContext {
public:
    explicit CudaContext(const CudaOptions& options);
    ~CudaContext();
    CudaContext(CudaContext&&) noexcept;
    CudaContext& operator=(CudaContext&&) noexcept;
    CudaContext(const CudaContext&) = delete; // owns streams
    CudaContext& operator=(const CudaContext&) = delete;

    const CudaDeviceInfo& device() const;
    /// Traits of the device: the shipped profile of its name with what the driver says, so that Meta with these traits
    /// allocates as this context does.
    const DeviceTraits& traits() const;
    /// DeviceFeatures::exactRows of these traits. Between runs only.
    void setExactRows(bool on);
    KernelLibrary& library();
    /// Another run begins on this context. Counts of kernels start at zero. Untracked bytes are the bytes that the
    /// driver counts minus `tracked`, which are kept for this run.
    void beginRun(std::uint64_t tracked);

    /// Launches a kernel of the library on the compute stream (into the capture, while one is open). Asynchronous.
    void launch(const KernelCall& call);
    /// Whether a variant of the family fits; ops use it to choose between fused and composed forms.
    bool fits(const KernelCall& call);

    /// While on, launches only start compiling what they need on the library's threads, and copies, fills and products
    /// do nothing: running a step's ops so, with addresses that need not exist, compiles all of its kernels side by
    /// side.
    void setPrefetching(bool on);

    /// out (m, n) = x (m, k) weight^T (n, k), through cuBLASLt: row-major, strides in elements, float32 accumulation,
    /// workspace as DeviceTraits::workspaceBytes. Allocates nothing.
    struct DenseProduct {
        const void* x = nullptr;
        const void* weight = nullptr;
        void* out = nullptr;
        DType xType = DType::BF16, weightType = DType::BF16, outType = DType::BF16;
        std::int64_t m = 0, n = 0, k = 0;
        std::int64_t xStride = 0, weightStride = 0, outStride = 0;
        bool transposedX = false;      ///< x is (k, m)
        bool transposedWeight = false; ///< weight is (k, n)
        const void* bias = nullptr;    ///< (n) of outType, or null
        float alpha = 1;               ///< out = alpha * product + bias + beta * out
        float beta = 0;
        /// Each result is added up in one order: a row of out depends on its row of x alone, whatever m is. Tensors
        /// begin at multiples of 16 bytes, as far as their rows do.
        bool exactRows = false;
    };
    void multiply(const DenseProduct& product);

    /// Stream-ordered copies on the compute stream. `host` memory that is not pinned is staged by the driver: it may be
    /// reused when the call returns.
    void copyToDevice(const void* host, void* device, std::uint64_t bytes);
    void copyToHost(const void* device, void* host, std::uint64_t bytes);
    void copyOnDevice(const void* from, void* to, std::uint64_t bytes);
    void fill(void* device, std::uint8_t value, std::uint64_t bytes);

    void synchronize(); ///< the compute stream; throws DeviceFault
    CudaEvent record(); ///< on the compute stream
    void throwIfFaulted() const;

    /// Everything launched between the two becomes a graph instead of running. Nothing may allocate or synchronise.
    void beginCapture();
    CudaGraph endCapture();
    void abortCapture() noexcept;
    bool capturing() const;
    void replay(const CudaGraph& graph);

    /// The CUstream of index 0 (compute) or 1 (copy), for cuBLASLt, NCCL and CUPTI; opaque here.
    void* stream(int index) const;
    void makeCurrent() const; ///< for helper threads, before their first call

    /// The physical resource at the bottom of the memory stack: device memory, or pinned host memory. The context must
    /// outlive it.
    std::unique_ptr<MemoryResource> makeResource(base::MemorySpace space);

    /// For the parts of this backend.
    std::shared_ptr<CudaDevice> sharedDevice() const;

    /// Bytes that the driver counts as used on the device, by everyone. Untracked bytes are this less what is tracked.
    std::uint64_t usedBytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
