// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/cuda_context.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_options.h"
#include "kernels/cuda/jit/cublaslt.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/cuda/jit/nvrtc.h"

namespace vitrine::kernels {

namespace {

constexpr std::uint64_t kDefaultWorkspace = std::uint64_t{32} << 20;
constexpr unsigned kSharedWithoutAsking = 48 * 1024;
constexpr unsigned kPortableCluster = 8;

/// Rates of a device that no profile describes, from its clocks: what its data sheet would say.
DeviceTraits estimatedTraits(const CudaDriver& driver, const CudaDeviceInfo& info) {
    CUdevice device = 0;
    driver.cuDeviceGet(&device, info.ordinal);
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        driver.cuDeviceGetAttribute(&value, which, device);
        return static_cast<double>(value);
    };
    DeviceTraits traits;
    const double memoryClock = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * 1e3;
    const double busBytes = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
    const double clock = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) * 1e3;
    traits.memoryBandwidth = std::max(2 * memoryClock * busBytes, 1e11);
    traits.flopsF32 = std::max(clock * info.multiprocessors * 256, 1e12);
    const double tensor = info.major >= 9 ? 16 : 8;
    traits.flopsBf16 = traits.flopsF16 = traits.flopsF32 * tensor / 2;
    traits.flopsF8 = traits.flopsBf16 * (info.major >= 9 ? 2 : 1);
    traits.expertShareDense = kGpuExpertShareDense;
    traits.attentionShareNarrow = kGpuAttentionShareNarrow;
    traits.attentionShareWide = kGpuAttentionShareWide;
    traits.attentionBackwardShareNarrow = kGpuAttentionBackwardShareNarrow;
    traits.attentionBackwardShareWide = kGpuAttentionBackwardShareWide;
    traits.hostToDeviceBandwidth = 2.5e10;
    traits.diskBandwidth = 2e10;
    traits.launchSeconds = 2.5e-6;
    traits.mapSeconds = kGpuMapSeconds;
    return traits;
}

/// The shipped profile for the name of this device, or an estimate from its clocks. Values that the driver knows
/// replace both.
DeviceTraits traitsOf(const CudaDriver& driver, const CudaDeviceInfo& info) {
    DeviceTraits traits = estimatedTraits(driver, info);
    if (const std::string profile = profileOfDevice(info.name); !profile.empty()) {
        traits = loadDeviceProfile(profile);
    }
    traits.id = traits.id.empty() ? "cuda" : traits.id;
    traits.name = info.name;
    traits.arch = archOf(info).name;
    traits.features = featuresOf(traits.arch);
    traits.memoryBytes = info.memoryBytes;
    traits.multiprocessors = info.multiprocessors;
    traits.sharedMemoryPerBlock = static_cast<std::uint64_t>(info.sharedPerBlock);
    traits.workspaceBytes = traits.workspaceBytes == 0 ? kDefaultWorkspace : traits.workspaceBytes;
    return traits;
}

/// A kernel of a loaded program.
struct LoadedKernel {
    CUfunction function = nullptr;
    int staticShared = 0;
    unsigned allowedShared = kSharedWithoutAsking;
    bool largeCluster = false;
};

struct LoadedProgram {
    CUlibrary library = nullptr;
    std::string name; ///< "rms_norm/fused"
    std::string pack; ///< empty: it comes with the program
    std::unordered_map<std::string, LoadedKernel> kernels;
};

} // namespace

// --- State

struct CudaContext::State {
    State(const CudaDriver& driver, const CudaOptions& given)
        : options(given), device(std::make_shared<CudaDevice>(driver, given.device, given.failFrom)) {}
    ~State();
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    CudaOptions options;
    std::shared_ptr<CudaDevice> device;
    DeviceTraits traits;
    std::unique_ptr<KernelLibrary> library;
    std::unordered_map<const KernelLibrary::Entry*, LoadedProgram> programs;
    std::unique_ptr<CublasLt> products;
    CUdeviceptr workspace = 0;
    bool capturing = false;
    bool prefetching = false;
    bool dependent = false; ///< programmatic dependent launch is on

    const CudaDriver& driver() const { return device->driver(); }
    LoadedProgram& program(const KernelLibrary::Entry& entry);
    LoadedKernel& kernel(LoadedProgram& program, const KernelLaunch& launch);
    void start(LoadedProgram& program, const KernelLaunch& launch, const void* parameters);
    void needNoCapture(const char* what) const {
        if (capturing) {
            throw base::Internal(fmt::format("{} inside a captured step", what));
        }
    }
};

CudaContext::State::~State() {
    device->makeCurrent();
    if (!device->faulted()) {
        driver().cuStreamSynchronize(device->compute());
        driver().cuStreamSynchronize(device->copy());
    }
    products.reset();
    driver().cuMemFree(workspace);
    for (auto& [entry, program] : programs) {
        driver().cuLibraryUnload(program.library);
    }
}

LoadedProgram& CudaContext::State::program(const KernelLibrary::Entry& entry) {
    const auto known = programs.find(&entry);
    if (known != programs.end()) {
        return known->second;
    }
    const std::vector<std::uint8_t>& image = KernelLibrary::cubin(entry);
    const KernelUse& use = KernelLibrary::use(entry);
    LoadedProgram program;
    program.name = use.family + "/" + use.variant;
    program.pack = KernelLibrary::builtin(entry) ? std::string() : use.pack;
    const CUresult code = device->allocating([&] {
        return driver().cuLibraryLoadData(&program.library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        device->check(code, "kernel " + program.name);
    }
    if (code != CUDA_SUCCESS) {
        device->throwIfFaulted();
        throw base::Unsupported(
            fmt::format("kernel {}: the driver (CUDA {}.{}) does not load it: {}; a driver as new as "
                        "NVRTC is needed",
                        program.name, driver().version / 1000, driver().version % 1000 / 10, driver().describe(code)));
    }
    return programs.emplace(&entry, std::move(program)).first->second;
}

LoadedKernel& CudaContext::State::kernel(LoadedProgram& program, const KernelLaunch& launch) {
    LoadedKernel& loaded = program.kernels[launch.entry];
    if (loaded.function == nullptr) {
        CUkernel handle = nullptr;
        device->check(driver().cuLibraryGetKernel(&handle, program.library, launch.entry.c_str()),
                      program.name + ": cuLibraryGetKernel " + launch.entry);
        // Asking for the function loads the code now, and not inside a capture later.
        device->check(driver().cuKernelGetFunction(&loaded.function, handle), "cuKernelGetFunction");
        device->check(
            driver().cuFuncGetAttribute(&loaded.staticShared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, loaded.function),
            "cuFuncGetAttribute");
        loaded.allowedShared -= std::min(loaded.allowedShared, static_cast<unsigned>(loaded.staticShared));
    }
    if (launch.sharedBytes > loaded.allowedShared) {
        device->check(driver().cuFuncSetAttribute(loaded.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                  static_cast<int>(launch.sharedBytes)),
                      program.name + ": shared memory");
        loaded.allowedShared = launch.sharedBytes;
    }
    const unsigned cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
    if (cluster > kPortableCluster && !loaded.largeCluster) {
        device->check(
            driver().cuFuncSetAttribute(loaded.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
            program.name + ": cluster");
        loaded.largeCluster = true;
    }
    return loaded;
}

void CudaContext::State::start(LoadedProgram& program, const KernelLaunch& launch, const void* parameters) {
    LoadedKernel& loaded = kernel(program, launch);
    std::array<CUlaunchAttribute, 2> attributes{};
    unsigned count = 0;
    if (launch.cluster != std::array<unsigned, 3>{1, 1, 1}) {
        CUlaunchAttribute& attribute = attributes[count++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attribute.value.clusterDim.x = launch.cluster[0];
        attribute.value.clusterDim.y = launch.cluster[1];
        attribute.value.clusterDim.z = launch.cluster[2];
    }
    if (launch.dependent && dependent) {
        CUlaunchAttribute& attribute = attributes[count++];
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
    }
    CUlaunchConfig config{};
    config.gridDimX = launch.grid[0];
    config.gridDimY = launch.grid[1];
    config.gridDimZ = launch.grid[2];
    config.blockDimX = launch.block[0];
    config.blockDimY = launch.block[1];
    config.blockDimZ = launch.block[2];
    config.sharedMemBytes = launch.sharedBytes;
    config.hStream = device->compute();
    config.attrs = attributes.data();
    config.numAttrs = count;
    std::array<void*, 1> arguments{const_cast<void*>(parameters)};
    device->launched(program.name, program.pack);
    device->check(driver().cuLaunchKernelEx(&config, loaded.function, arguments.data(), nullptr),
                  fmt::format("{}: launch of {}", program.name, launch.entry));
}

// --- Graphs and events

struct CudaGraph::State {
    std::shared_ptr<CudaDevice> device;
    CUgraphExec executable = nullptr;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        if (executable != nullptr) {
            device->driver().cuGraphExecDestroy(executable);
        }
    }
};

CudaGraph::CudaGraph() = default;
CudaGraph::~CudaGraph() = default;
CudaGraph::CudaGraph(CudaGraph&&) noexcept = default;
CudaGraph& CudaGraph::operator=(CudaGraph&&) noexcept = default;

bool CudaGraph::empty() const {
    return state_ == nullptr;
}

struct CudaEvent::State {
    std::shared_ptr<CudaDevice> device;
    CUevent event = nullptr;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
        if (event != nullptr) {
            device->driver().cuEventDestroy(event);
        }
    }
};

CudaEvent::CudaEvent() = default;
CudaEvent::~CudaEvent() = default;
CudaEvent::CudaEvent(CudaEvent&&) noexcept = default;
CudaEvent& CudaEvent::operator=(CudaEvent&&) noexcept = default;

CudaEvent CudaEvent::recordOn(const std::shared_ptr<CudaDevice>& device, void* stream) {
    CudaEvent event;
    event.state_ = std::make_unique<State>();
    event.state_->device = device;
    device->check(device->driver().cuEventCreate(&event.state_->event, CU_EVENT_DEFAULT), "cuEventCreate");
    device->check(device->driver().cuEventRecord(event.state_->event, static_cast<CUstream>(stream)), "cuEventRecord");
    return event;
}

void* CudaEvent::handle() const {
    return state_ == nullptr ? nullptr : state_->event;
}

void CudaEvent::wait() const {
    if (state_ != nullptr) {
        state_->device->check(state_->device->driver().cuEventSynchronize(state_->event), "cuEventSynchronize");
    }
}

bool CudaEvent::done() const {
    if (state_ == nullptr) {
        return true;
    }
    const CUresult code = state_->device->driver().cuEventQuery(state_->event);
    if (code != CUDA_ERROR_NOT_READY) {
        state_->device->check(code, "cuEventQuery");
    }
    return code == CUDA_SUCCESS;
}

double CudaEvent::secondsSince(const CudaEvent& earlier) const {
    wait();
    float milliseconds = 0;
    state_->device->check(
        state_->device->driver().cuEventElapsedTime(&milliseconds, earlier.state_->event, state_->event),
        "cuEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
}

// --- CudaContext

std::string whyNoCuda() {
    if (CudaDriver::find() == nullptr) {
        return CudaDriver::whyMissing();
    }
    if (cudaDevices().empty()) {
        return "the NVIDIA driver sees no device";
    }
    return Nvrtc::find() == nullptr ? Nvrtc::whyMissing() : std::string();
}

CudaContext::CudaContext(const CudaOptions& options) {
    const CudaDriver* driver = CudaDriver::find();
    if (driver == nullptr) {
        throw base::Unsupported(
            fmt::format("backend: {}; or use --backend cpu or --backend meta", CudaDriver::whyMissing()));
    }
    state_ = std::make_unique<State>(*driver, options);
    State& state = *state_;
    const CudaDeviceInfo& info = state.device->info();
    state.dependent = options.dependentLaunch && info.major >= 9;
    state.traits = traitsOf(*driver, info);
    KernelLibraryOptions library;
    library.packs = options.kernelPacks;
    library.overrides = options.kernelOverrides;
    library.cacheFolder = options.cacheFolder;
    state.library = std::make_unique<KernelLibrary>(archOf(info), std::move(library));
    state.device->check(
        state.device->allocating([&] { return driver->cuMemAlloc(&state.workspace, state.traits.workspaceBytes); }),
        "workspace");
    // Bytes that other programs hold on this device are untracked, like those of the context and the libraries.
    state.traits.untrackedBytes = usedBytes();
    const Nvrtc* compiler = Nvrtc::find();
    base::logInfo(fmt::format("CUDA device {}: {} ({}, {} multiprocessors), driver CUDA {}.{}, NVRTC {}", info.ordinal,
                              info.name, state.traits.arch, info.multiprocessors, driver->version / 1000,
                              driver->version % 1000 / 10,
                              compiler == nullptr ? std::string("missing") : compiler->version()));
}

CudaContext::~CudaContext() = default;
CudaContext::CudaContext(CudaContext&&) noexcept = default;
CudaContext& CudaContext::operator=(CudaContext&&) noexcept = default;

const CudaDeviceInfo& CudaContext::device() const {
    return state_->device->info();
}

const DeviceTraits& CudaContext::traits() const {
    return state_->traits;
}

void CudaContext::setExactRows(bool on) {
    state_->traits.features.exactRows = on;
}

KernelLibrary& CudaContext::library() {
    return *state_->library;
}

void CudaContext::beginRun(std::uint64_t tracked) {
    const std::uint64_t used = usedBytes();
    state_->traits.untrackedBytes = used - std::min(used, tracked);
    state_->library->beginRun();
}

void CudaContext::launch(const KernelCall& call) {
    State& state = *state_;
    state.device->throwIfFaulted();
    if (state.prefetching) {
        state.library->prefetch(call);
        return;
    }
    const KernelLibrary::Entry& entry = state.library->entry(call);
    LoadedProgram& program = state.program(entry);
    for (const KernelLaunch& launch : KernelLibrary::launches(entry, call)) {
        state.start(program, launch, call.parameters);
    }
}

bool CudaContext::fits(const KernelCall& call) {
    return state_->library->fits(call);
}

void CudaContext::setPrefetching(bool on) {
    state_->prefetching = on;
}

void CudaContext::multiply(const DenseProduct& product) {
    State& state = *state_;
    state.device->throwIfFaulted();
    if (state.products == nullptr) {
        state.products = std::make_unique<CublasLt>(); // opening the library takes a while: also when prefetching
        if (state.prefetching) {
            state.device->launched("cuBLASLt");
            state.device->check(state.driver().cuMemsetD8Async(state.workspace, 0, state.traits.workspaceBytes,
                                                               state.device->compute()),
                                "cuMemsetD8Async");
            // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
            state.products->wakeUp(state.device->compute(), reinterpret_cast<void*>(state.workspace),
                                   state.traits.workspaceBytes);
        }
    }
    if (state.prefetching || product.m == 0 || product.n == 0) {
        return;
    }
    state.device->launched("cuBLASLt");
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
    state.products->multiply(product, state.device->compute(), reinterpret_cast<void*>(state.workspace),
                             state.traits.workspaceBytes);
}

void CudaContext::copyToDevice(const void* host, void* device, std::uint64_t bytes) {
    state_->needNoCapture("a copy from the host");
    if (bytes > 0 && !state_->prefetching) {
        state_->device->check(state_->driver().cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(device), host, bytes,
                                                                 state_->device->compute()),
                              "cuMemcpyHtoDAsync");
    }
}

void CudaContext::copyToHost(const void* device, void* host, std::uint64_t bytes) {
    state_->needNoCapture("a copy to the host");
    if (bytes > 0 && !state_->prefetching) {
        state_->device->check(state_->driver().cuMemcpyDtoHAsync(host, reinterpret_cast<CUdeviceptr>(device), bytes,
                                                                 state_->device->compute()),
                              "cuMemcpyDtoHAsync");
    }
}

void CudaContext::copyOnDevice(const void* from, void* to, std::uint64_t bytes) {
    if (bytes > 0 && !state_->prefetching) {
        state_->device->check(state_->driver().cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(to),
                                                                 reinterpret_cast<CUdeviceptr>(from), bytes,
                                                                 state_->device->compute()),
                              "cuMemcpyDtoDAsync");
    }
}

void CudaContext::fill(void* device, std::uint8_t value, std::uint64_t bytes) {
    if (bytes > 0 && !state_->prefetching) {
        state_->device->check(state_->driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(device), value, bytes,
                                                               state_->device->compute()),
                              "cuMemsetD8Async");
    }
}

void CudaContext::synchronize() {
    state_->needNoCapture("a wait for the device");
    if (state_->prefetching) {
        return;
    }
    state_->device->check(state_->driver().cuStreamSynchronize(state_->device->compute()), "cuStreamSynchronize");
}

CudaEvent CudaContext::record() {
    return CudaEvent::recordOn(state_->device, state_->device->compute());
}

void CudaContext::throwIfFaulted() const {
    state_->device->throwIfFaulted();
}

void CudaContext::beginCapture() {
    state_->needNoCapture("a capture");
    // Relaxed: kernels may be loaded on the way.
    state_->device->check(
        state_->driver().cuStreamBeginCapture(state_->device->compute(), CU_STREAM_CAPTURE_MODE_RELAXED),
        "cuStreamBeginCapture");
    state_->capturing = true;
}

CudaGraph CudaContext::endCapture() {
    State& state = *state_;
    CUgraph captured = nullptr;
    state.capturing = false;
    state.device->check(state.driver().cuStreamEndCapture(state.device->compute(), &captured), "cuStreamEndCapture");
    CudaGraph graph;
    graph.state_ = std::make_unique<CudaGraph::State>();
    graph.state_->device = state.device;
    const CUresult code = state.device->allocating(
        [&] { return state.driver().cuGraphInstantiate(&graph.state_->executable, captured, 0); });
    state.driver().cuGraphDestroy(captured);
    state.device->check(code, "a step's graph");
    state.device->check(state.device->allocating([&] {
        return state.driver().cuGraphUpload(graph.state_->executable, state.device->compute());
    }),
                        "a step's graph");
    return graph;
}

void CudaContext::abortCapture() noexcept {
    if (state_->capturing) {
        CUgraph captured = nullptr;
        state_->capturing = false;
        if (state_->driver().cuStreamEndCapture(state_->device->compute(), &captured) == CUDA_SUCCESS) {
            state_->driver().cuGraphDestroy(captured);
        }
    }
}

bool CudaContext::capturing() const {
    return state_->capturing;
}

void CudaContext::replay(const CudaGraph& graph) {
    state_->needNoCapture("a replay");
    if (graph.empty()) {
        throw base::Internal("an empty graph was replayed");
    }
    state_->device->launched("a step's graph");
    state_->device->check(state_->driver().cuGraphLaunch(graph.state_->executable, state_->device->compute()),
                          "cuGraphLaunch");
}

void* CudaContext::stream(int index) const {
    return index == 0 ? state_->device->compute() : state_->device->copy();
}

void CudaContext::makeCurrent() const {
    state_->device->makeCurrent();
}

std::unique_ptr<MemoryResource> CudaContext::makeResource(base::MemorySpace space) {
    return space == base::MemorySpace::Device ? makeDeviceResource(state_->device) : makePinnedResource(state_->device);
}

std::shared_ptr<CudaDevice> CudaContext::sharedDevice() const {
    return state_->device;
}

std::uint64_t CudaContext::usedBytes() const {
    std::size_t available = 0;
    std::size_t total = 0;
    state_->device->check(state_->driver().cuMemGetInfo(&available, &total), "cuMemGetInfo");
    return total - available;
}

} // namespace vitrine::kernels
