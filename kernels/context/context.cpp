// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/context/context.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "kernels/context/context_options.h"
#include "kernels/context/cpu_context.h"
#include "kernels/context/meta_context.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/cuda/kept_state.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/physical.h"

namespace vitrine::kernels {

namespace {

std::unique_ptr<MetaContext> makeMeta(const ContextOptions& options) {
    if (options.backend != Backend::Meta) {
        return nullptr;
    }
    if (options.traits.id.empty()) {
        throw base::Internal("a Meta context needs a device profile");
    }
    DeviceTraits traits = options.traits;
    traits.features.exactRows = traits.features.exactRows || options.exactRows;
    auto meta = std::make_unique<MetaContext>(traits);
    meta->setUnwatched(options.sink == nullptr || options.profile == ProfileLevel::Off);
    return meta;
}

std::unique_ptr<CudaContext> makeCuda(const ContextOptions& options) {
    if (options.backend != Backend::Cuda) {
        return nullptr;
    }
    auto cuda = options.kept != nullptr ? std::make_unique<CudaContext>(options.kept->takeCuda(options.cuda))
                                        : std::make_unique<CudaContext>(options.cuda);
    cuda->setExactRows(options.exactRows);
    return cuda;
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
    DeviceTraits traits = options.traits.id.empty() ? cpuTraits(options.threads) : options.traits;
    traits.features.exactRows = traits.features.exactRows || options.exactRows;
    return traits;
}

} // namespace

Context::Context(const ContextOptions& options)
    : cpu_(options.backend == Backend::Cpu ? std::make_unique<CpuContext>(options.threads) : nullptr),
      meta_(makeMeta(options)), cuda_(makeCuda(options)), capabilities_(capabilitiesOf(backend())),
      traits_(traitsOf(options, cuda())), trace_(options.trace), communicator_(options.communicator),
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
    if (options.trace == nullptr) {
        ownTrace_ = std::make_unique<RunTrace>(*sink);
    }
    tracer_ =
        std::make_unique<Tracer>(runTrace(), *clock_, options.sink == nullptr ? ProfileLevel::Off : options.profile,
                                 static_cast<base::DeviceRank>(rank()), options.foldSteps);
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
        memory.onMapped = [this, virtualDevice](std::uint64_t) { virtualDevice->addOnce(traits_.mapSeconds); };
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
    if (cuda_ != nullptr) {
        return Backend::Cuda;
    }
    return meta_ != nullptr ? Backend::Meta : Backend::Cpu;
}

base::ThreadPool& Context::hostPool() {
    return cpu_->pool();
}

SimdLevel Context::simd() {
    return cpu_->simd();
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
        out.event_ = std::make_shared<const CudaEvent>(gpu->record());
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

void Context::passTime(double seconds, double exchange) {
    meta()->addCompute(seconds);
    meta()->addExchange(exchange);
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

base::ScopeId Context::beginOp(std::string_view name, base::MemoryCategory category) {
    return tracer_->beginScope(base::ScopeKind::Op, name, -1, 0, category);
}

void Context::endOp(base::ScopeId scope, const Cost& cost) {
    tracer_->endScope(scope, cost.bytes(), cost.flops);
}

void Context::chargeMeta(std::string_view op, const Cost& cost) {
    MetaContext* const virtualDevice = meta();
    if (virtualDevice == nullptr) {
        return;
    }
    Cost classed = cost;
    classed.rateClass = copies_ ? rateClassOfCopies(cost.rateClass) : cost.rateClass;
    const OpSeconds time = virtualDevice->secondsOf(op, classed);
    virtualDevice->charge(op, time);
    if (cost.exchanges > 0) {
        // What the op does beside it is small, or was measured together with it.
        const double links = traits_.linkSeconds(static_cast<double>(cost.linkBytes), cost.exchanges, cost.ranks);
        virtualDevice->addExchange(std::min(links, time.seconds));
    }
}

base::TimeNs Context::onceTime() const {
    return meta_ == nullptr ? 0 : meta_->onceTime();
}

void Context::passFirstUse(LaunchKind kind, std::int64_t layers, std::int64_t rows) {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->passFirstUse(kind, layers, rows);
    }
}

double Context::exchangeSeconds() const {
    return meta_ == nullptr ? 0 : static_cast<double>(meta_->exchangeTime()) * 1e-9;
}

PricedTime Context::pricedTime() const {
    return meta_ == nullptr ? PricedTime{} : meta_->pricedTime();
}

void Context::beginVirtualStep(LaunchKind kind) {
    if (MetaContext* virtualDevice = meta()) {
        virtualDevice->beginStep(kind);
    }
}

Prefetch::Prefetch(Context& context) : gpu_(context.cuda()) {
    if (gpu_ != nullptr) {
        gpu_->setPrefetching(true);
    }
}

Prefetch::~Prefetch() {
    if (gpu_ != nullptr) {
        gpu_->setPrefetching(false);
    }
}

GraphCapture::GraphCapture(Context& context) : gpu_(*context.cuda()) {
    gpu_.beginCapture();
}

GraphCapture::~GraphCapture() {
    gpu_.abortCapture();
}

CudaGraph GraphCapture::end() {
    return gpu_.endCapture();
}

} // namespace vitrine::kernels
