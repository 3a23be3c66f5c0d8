// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/context.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <thread>

#include "base/error.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/memory/physical.h"

namespace vitrine::kernels {

namespace {

SimdLevel machineSimd() {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        return SimdLevel::Avx512;
    }
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? SimdLevel::Avx2 : SimdLevel::Scalar;
}

base::TimeNs nanoseconds(double seconds) {
    return static_cast<base::TimeNs>(std::llround(seconds * 1e9));
}

} // namespace

double rooflineSeconds(const Cost& cost, const DeviceTraits& traits) {
    const double memory = traits.memoryBandwidth > 0 ? static_cast<double>(cost.bytes()) / traits.memoryBandwidth : 0;
    const double flops = traits.flops(cost.computeType) * cost.share;
    const double compute = flops > 0 ? static_cast<double>(cost.flops) / flops : 0;
    return std::max(memory, compute) + cost.launches * traits.launchSeconds;
}

std::string_view simdName(SimdLevel level) {
    switch (level) {
    case SimdLevel::Avx512:
        return "avx512";
    case SimdLevel::Avx2:
        return "avx2";
    case SimdLevel::Scalar:
        break;
    }
    return "scalar";
}

CpuContext::CpuContext(int threads) : pool_(std::make_unique<base::ThreadPool>(threads)), simd_(machineSimd()) {}

void CpuContext::setSimd(SimdLevel level) {
    if (level > machineSimd()) {
        throw base::BadInput(fmt::format("simd: {}: this machine's processor has {} at most; use that or auto",
                                         simdName(level), simdName(machineSimd())));
    }
    simd_ = level;
}

void MetaContext::addCompute(double seconds) {
    compute_ += nanoseconds(seconds);
}

void MetaContext::addCopy(double seconds) {
    copy_ += nanoseconds(seconds);
}

void MetaContext::joinStreams() {
    compute_ = copy_ = std::max(compute_, copy_);
}

void throwNoCuda(std::string_view op) {
    throw base::Unsupported(
        fmt::format("backend: {} does not run on CUDA in this build; use --backend cpu or --backend meta", op));
}

std::string_view backendName(Backend backend) {
    switch (backend) {
    case Backend::Cpu:
        return "cpu";
    case Backend::Meta:
        return "meta";
    case Backend::Cuda:
        return "cuda";
    }
    return "";
}

namespace {

std::variant<CpuContext, MetaContext, CudaContext> makeBackend(const ContextOptions& options) {
    using Variant = std::variant<CpuContext, MetaContext, CudaContext>;
    switch (options.backend) {
    case Backend::Cpu:
        return Variant(std::in_place_type<CpuContext>, options.threads);
    case Backend::Meta:
        if (options.traits.id.empty()) {
            throw base::Internal("a Meta context needs a device profile");
        }
        return Variant(std::in_place_type<MetaContext>, options.traits);
    case Backend::Cuda:
        break;
    }
    if (options.kept != nullptr) {
        return options.kept->takeCuda(options.cuda);
    }
    return Variant(std::in_place_type<CudaContext>, options.cuda);
}

Capabilities capabilitiesOf(Backend backend) {
    Capabilities can;
    can.computesValues = backend != Backend::Meta;
    can.virtualTime = backend == Backend::Meta;
    can.runsOnHost = backend == Backend::Cpu;
    can.runsAhead = can.replaysGraphs = can.compilesKernels = backend == Backend::Cuda;
    return can;
}

DeviceTraits traitsOf(const ContextOptions& options, const CudaContext* cuda) {
    if (cuda != nullptr) {
        return cuda->traits();
    }
    return options.traits.id.empty() ? cpuTraits(options.threads) : options.traits;
}

} // namespace

Context::Context(const ContextOptions& options)
    : backend_(makeBackend(options)), capabilities_(capabilitiesOf(backend())), traits_(traitsOf(options, cuda())),
      stop_(options.stop), kept_(isMeta() ? nullptr : options.kept) {
    if (cpu() != nullptr && options.simd) {
        cpu()->setSimd(*options.simd);
    }
    if (MetaContext* virtualDevice = meta()) {
        clock_ = virtualDevice;
    } else if (options.clock != nullptr) {
        clock_ = options.clock;
    } else {
        ownClock_ = std::make_unique<base::MonotonicClock>();
        clock_ = ownClock_.get();
    }
    base::TraceSink* sink = options.sink;
    if (sink == nullptr) {
        ownSink_ = std::make_unique<base::NullTraceSink>();
        sink = ownSink_.get();
    }
    tracer_ = std::make_unique<Tracer>(*sink, *clock_, options.sink == nullptr ? ProfileLevel::Off : options.profile,
                                       options.foldSteps);
    MemoryOptions memory = options.memory;
    if (memory.deviceBudget == 0) {
        memory.deviceBudget = traits_.memoryBytes;
    }
    if (memory.untracked == 0) {
        memory.untracked = traits_.untrackedBytes;
    }
    memory.mapUnit = traits_.mapUnit;
    if (MetaContext* virtualDevice = meta()) {
        // As if nothing ran beside it.
        memory.onMapped = [this, virtualDevice](std::uint64_t) { virtualDevice->addCompute(traits_.mapSeconds); };
    }
    if (CudaContext* gpu = cuda()) {
        memory.guardAccess.fill = [gpu](void* device, std::uint8_t value, std::uint64_t bytes) {
            gpu->fill(device, value, bytes);
        };
        memory.guardAccess.read = [gpu](const void* device, void* host, std::uint64_t bytes) {
            gpu->copyToHost(device, host, bytes);
            gpu->synchronize();
        };
    }
    const auto make = [&](base::MemorySpace space) {
        if (isMeta()) {
            return makeMetaResource(space);
        }
        return cuda() != nullptr ? cuda()->makeResource(space) : makeHostResource(space);
    };
    memory_ =
        std::make_unique<Memory>(make(base::MemorySpace::Device), make(base::MemorySpace::Host), memory, *tracer_);
}

Context::~Context() {
    memory_.reset();
    if (kept_ != nullptr && cuda() != nullptr) {
        kept_->giveCuda(std::move(*cuda()));
    }
}

Backend Context::backend() const {
    return static_cast<Backend>(backend_.index());
}

MetaContext* Context::meta() {
    return std::get_if<MetaContext>(&backend_);
}

void Context::upload(const void* host, void* device, std::uint64_t bytes) {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->addCopy(static_cast<double>(bytes) / traits_.hostToDeviceBandwidth);
    } else if (CudaContext* gpu = cuda()) {
        gpu->copyToDevice(host, device, bytes);
    } else {
        std::memcpy(device, host, bytes);
    }
}

void Context::download(const void* device, void* host, std::uint64_t bytes) {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->joinStreams();
        virtualDevice->addCopy(static_cast<double>(bytes) / traits_.hostToDeviceBandwidth);
        virtualDevice->joinStreams();
        std::memset(host, 0, bytes);
    } else if (CudaContext* gpu = cuda()) {
        gpu->copyToHost(device, host, bytes);
        gpu->synchronize();
    } else {
        std::memcpy(host, device, bytes);
    }
}

void Context::copy(const void* from, void* to, std::uint64_t bytes) {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->addCompute(2 * static_cast<double>(bytes) / traits_.memoryBandwidth);
    } else if (CudaContext* gpu = cuda()) {
        gpu->copyOnDevice(from, to, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

void Context::downloadLater(const void* device, void* host, std::uint64_t bytes) {
    if (CudaContext* gpu = cuda()) {
        gpu->copyToHost(device, host, bytes);
    } else {
        download(device, host, bytes);
    }
}

void Mark::wait() const {
    if (event_) {
        event_->wait();
    }
}

double Mark::secondsSince(const Mark& earlier) const {
    return event_ && earlier.event_ ? event_->secondsSince(*earlier.event_)
                                    : static_cast<double>(time_ - earlier.time_) * 1e-9;
}

Mark Context::mark() {
    Mark out;
    if (CudaContext* gpu = cuda()) {
        out.event_ = gpu->record();
    } else {
        out.time_ = clock_->now();
    }
    return out;
}

void Context::synchronize() {
    if (CudaContext* gpu = cuda()) {
        gpu->synchronize();
    }
}

void Context::replay(const CudaGraph& graph) {
    cuda()->replay(graph);
}

void Context::joinStreams() {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->joinStreams();
    }
}

void Context::passTime(double seconds) {
    meta()->addCompute(seconds);
}

void Context::passCopyTime(double seconds) {
    meta()->addCopy(seconds);
}

void Context::waitUntil(base::TimeNs time) {
    constexpr base::TimeNs kLongestSleep = 20'000'000; // a stop is noticed this often
    if (capabilities_.virtualTime) {
        joinStreams();
        passTime(static_cast<double>(std::max<base::TimeNs>(time - clock_->now(), 1)) * 1e-9);
        joinStreams();
        return;
    }
    for (base::TimeNs now = clock_->now(); now < time; now = clock_->now()) {
        throwIfStopped();
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(time - now, kLongestSleep)));
    }
}

KernelLibrary* Context::kernelLibrary() {
    CudaContext* const gpu = cuda();
    return gpu == nullptr ? nullptr : &gpu->library();
}

void Context::waitForKernels(base::ProgressSink* progress) {
    if (CudaContext* gpu = cuda()) {
        gpu->library().waitForPrefetch(progress, stop_);
    }
}

base::ScopeId Context::beginOp(std::string_view name) {
    return tracer_->beginScope(base::ScopeKind::Op, name);
}

void Context::endOp(base::ScopeId scope, const Cost& cost) {
    tracer_->endScope(scope, cost.bytes(), cost.flops);
}

void Context::chargeMeta(const Cost& cost) {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->addCompute(rooflineSeconds(cost, traits_));
    }
}

} // namespace vitrine::kernels
