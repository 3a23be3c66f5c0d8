// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The one CUPTI session of this process. It lives until the process ends: CUPTI 13.0 gives graphs' launches wrong
// correlation ids in sessions after the first, and its callbacks may come late. Runs switch kinds on and off inside it.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <pthread.h>
#include <unordered_set>
#include <vector>

#include "base/launch_scope.h"
#include "base/shared_library.h"
#include "profiler/gpu/buffer_ring.h"
#include "profiler/gpu/cupti_api.h"
#include "profiler/gpu/cupti_records.h"
#include "profiler/gpu/device_work.h"

namespace vitrine::profiler {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kBuffersAtOnce = 4;
constexpr std::size_t kMaxBuffers = 128;

/// Calls of the driver that put work on a device: their correlation ids are what records carry.
constexpr std::array kLaunchCalls = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,      CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,  CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,         CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync,    CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_v2, CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2,       CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2,       CUPTI_DRIVER_TRACE_CBID_cuMemcpy,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,       CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,      CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,   CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
};
/// Libraries that bring their own CUDA runtime: their kernels carry the ids of its calls.
constexpr std::array kRuntimeLaunchCalls = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
};
/// Calls that make an executable graph.
constexpr std::array kInstantiateCalls = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz,
};
constexpr std::array kGraphCalls = {CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz};
constexpr std::array kGraphResources = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                                        CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING,
                                        CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
                                        CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING};
constexpr std::array kEverything = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                    CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                    CUPTI_ACTIVITY_KIND_OVERHEAD};

/// Of a full command buffer CUPTI allocates details, which the reader frees; other kinds leave the pointer undefined.
void freeDetails(CUpti_Activity& record) {
    if (record.kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
        auto& overhead = reinterpret_cast<CUpti_ActivityOverhead3&>(record);
        if (overhead.overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL) {
            std::free(overhead.overheadData);
        }
    }
}

class Session {
public:
    /// Null with one sentence when CUPTI refuses.
    static Session* open(std::string& why);

    void setDetail(TraceDetail detail);
    void collect(bool last, const std::function<void(const DeviceWork&)>& take);
    std::uint64_t lost() const { return lost_; }
    LaunchMap& launches() { return launches_; }

    std::atomic<bool> taken = false; ///< by a source

private:
    explicit Session(const CuptiApi& api) : api_(api) {}
    std::string start();
    void setKind(CUpti_ActivityKind kind, bool on);
    void onInstantiate(bool begins);
    void onGraphLaunch(CUgraphExec graph);
    void setCallbacks(bool everything, bool graphs);
    void onResource(CUpti_CallbackId id, const CUpti_ResourceData& data);
    void parse(const BufferRing::Full& buffer, const std::function<void(const DeviceWork&)>& take);

    static void CUPTIAPI onCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
    static void CUPTIAPI onRequest(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
    static void CUPTIAPI onComplete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid);

    static std::atomic<Session*> instance;

    const CuptiApi& api_;
    CUpti_SubscriberHandle subscriber_ = nullptr;
    LaunchMap launches_;
    BufferRing buffers_{kBufferBytes, kBuffersAtOnce, kMaxBuffers};
    std::mutex detailMutex_;
    TraceDetail detail_ = TraceDetail::Nothing;
    bool foreignGraphs_ = false;
    std::mutex graphsMutex_;
    std::unordered_set<const void*> graphs_; ///< made while graphs were traced
    int (*synchronize_)() = nullptr;         ///< of the driver: waits for the current device
    std::atomic<std::uint64_t> lost_ = 0;
};

std::atomic<Session*> Session::instance = nullptr;

/// A child of fork() has no CUDA; what it inherits must stay quiet.
std::atomic<bool> isChild = false;

Session* Session::open(std::string& why) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (Session* known = instance) {
        return known;
    }
    const CuptiApi* api = CuptiApi::find();
    if (api == nullptr) {
        why = CuptiApi::whyMissing();
        return nullptr;
    }
    auto session = std::unique_ptr<Session>(new Session(*api));
    instance = session.get(); // the callbacks find it there
    why = session->start();
    if (!why.empty()) {
        instance = nullptr;
        return nullptr;
    }
    pthread_atfork(nullptr, nullptr, [] { isChild = true; });
    // Never destroyed: late callbacks find it.
    return session.release();
}

std::string Session::start() {
    std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN + 1> holder{};
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "Vitrine";
    params.oldSubscriberName = holder.data();
    params.oldSubscriberSize = CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN;
    CUptiResult code = api_.cuptiSubscribe_v2(&subscriber_, &Session::onCallback, nullptr, &params);
    if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
        return fmt::format("another tool ({}) profiles this process already; end it to see kernels here",
                           holder[0] == '\0' ? "its name is not known" : holder.data());
    }
    if (code != CUPTI_SUCCESS) {
        return api_.describe(code);
    }
    // Before any kind is on: from then on all times are those of the run's clock.
    code = api_.cuptiActivityRegisterTimestampCallback([] { return static_cast<std::uint64_t>(base::monotonicNs()); });
    if (code == CUPTI_SUCCESS) {
        code = api_.cuptiActivityRegisterCallbacks(&Session::onRequest, &Session::onComplete);
    }
    if (code != CUPTI_SUCCESS) {
        api_.cuptiUnsubscribe(subscriber_);
        return api_.describe(code);
    }
    const std::vector<std::string> driver{"libcuda.so.1"};
    synchronize_ = reinterpret_cast<int (*)()>(base::SharedLibrary::find(driver).symbol("cuCtxSynchronize"));
    // These stay on: a graph that is captured now may be looked into later.
    for (const auto id : kGraphResources) {
        api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id);
    }
    for (const auto id : kInstantiateCalls) {
        api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
    api_.cuptiActivityEnableAllSyncRecords(0); // polls that find nothing are not worth a record
    return {};
}

void Session::setKind(CUpti_ActivityKind kind, bool on) {
    const CUptiResult code = on ? api_.cuptiActivityEnable(kind) : api_.cuptiActivityDisable(kind);
    if (code != CUPTI_SUCCESS && on) {
        ++lost_;
    }
}

void Session::setCallbacks(bool everything, bool graphs) {
    for (const auto id : kLaunchCalls) {
        api_.cuptiEnableCallback(everything ? 1 : 0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
    for (const auto id : kRuntimeLaunchCalls) {
        api_.cuptiEnableCallback(everything ? 1 : 0, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, id);
    }
    for (const auto id : kGraphCalls) {
        api_.cuptiEnableCallback(graphs ? 1 : 0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
}

void Session::setDetail(TraceDetail detail) {
    const std::lock_guard lock(detailMutex_);
    if (detail == detail_) {
        return;
    }
    const auto everything = [](TraceDetail value) { return value == TraceDetail::Everything; };
    if (synchronize_ != nullptr) {
        // Steps are launched ahead. A graph that still runs would keep CUPTI's instruments, and its next launches their
        // correlation id.
        synchronize_();
        if (everything(detail_)) {
            // The times of a graph's kernels lie where its next launch writes its own: they are fetched before.
            api_.cuptiActivityFlushAll(0);
        }
    }
    setCallbacks(everything(detail), detail != TraceDetail::Nothing);
    if (detail_ == TraceDetail::Graphs && !foreignGraphs_) {
        setKind(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, false); // it hides the nodes
    }
    if (everything(detail) != everything(detail_)) {
        for (const CUpti_ActivityKind kind : kEverything) {
            setKind(kind, everything(detail));
        }
    }
    if (detail == TraceDetail::Graphs && !foreignGraphs_) {
        setKind(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, true);
    }
    detail_ = detail;
}

/// CUPTI 13.0 crashes in the launch of a graph that was made while graphs were not traced once they are. So they are,
/// for as long as it is made.
void Session::onInstantiate(bool begins) {
    const std::lock_guard lock(detailMutex_);
    if (detail_ != TraceDetail::Graphs || foreignGraphs_) {
        setKind(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, begins);
    }
}

/// A graph from before this session would crash: its like is not traced any more.
void Session::onGraphLaunch(CUgraphExec graph) {
    {
        const std::lock_guard lock(graphsMutex_);
        if (graphs_.contains(graph)) {
            return;
        }
    }
    const std::lock_guard lock(detailMutex_);
    if (detail_ == TraceDetail::Graphs && !foreignGraphs_) {
        setKind(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, false);
    }
    foreignGraphs_ = true;
}

void Session::onResource(CUpti_CallbackId id, const CUpti_ResourceData& data) {
    const auto* graph = static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
    if (graph != nullptr && id == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) {
        const std::lock_guard lock(graphsMutex_);
        graphs_.insert(graph->graphExec);
        return;
    }
    if (graph != nullptr && id == CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING) {
        const std::lock_guard lock(graphsMutex_);
        graphs_.erase(graph->graphExec);
        return;
    }
    std::uint64_t node = 0;
    if (graph == nullptr || api_.cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS) {
        return;
    }
    std::uint64_t original = 0;
    switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
        launches_.nodeCreated(node, base::launchScope());
        break;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
        if (api_.cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS) {
            launches_.nodeCloned(original, node);
        }
        break;
    default:
        launches_.nodeDestroyed(node);
        break;
    }
}

void Session::onCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    Session* session = instance;
    if (session == nullptr || isChild) {
        return;
    }
    try {
        if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
            session->onResource(id, *static_cast<const CUpti_ResourceData*>(data));
            return;
        }
        const auto& call = *static_cast<const CUpti_CallbackData*>(data);
        if (domain == CUPTI_CB_DOMAIN_DRIVER_API &&
            std::ranges::find(kInstantiateCalls, id) != kInstantiateCalls.end()) {
            session->onInstantiate(call.callbackSite == CUPTI_API_ENTER);
            return;
        }
        if (call.callbackSite == CUPTI_API_ENTER) {
            if (domain == CUPTI_CB_DOMAIN_DRIVER_API && std::ranges::find(kGraphCalls, id) != kGraphCalls.end()) {
                // Both forms of the call begin with the graph.
                session->onGraphLaunch(*static_cast<CUgraphExec const*>(call.functionParams));
            }
            session->launches_.launched(call.correlationId, base::launchScope());
        }
    } catch (const std::exception&) {
        ++session->lost_; // out of memory: the record will have no scope
    }
}

void Session::onRequest(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    Session* session = instance;
    *records = 0; // as many as fit
    try {
        *buffer = session == nullptr || isChild ? nullptr : session->buffers_.take();
    } catch (const std::exception&) {
        *buffer = nullptr;
    }
    *size = *buffer == nullptr ? 0 : kBufferBytes;
}

void Session::onComplete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    Session* session = instance;
    if (session == nullptr || buffer == nullptr || isChild) {
        return;
    }
    try {
        session->buffers_.fill(buffer, valid);
    } catch (const std::exception&) {
        ++session->lost_; // its records are
    }
}

void Session::parse(const BufferRing::Full& buffer, const std::function<void(const DeviceWork&)>& take) {
    CUpti_Activity* record = nullptr;
    while (api_.cuptiActivityGetNextRecord(buffer.data, buffer.bytes, &record) == CUPTI_SUCCESS) {
        bool lostTimes = false;
        if (const std::optional<DeviceWork> work = workOf(*record, lostTimes)) {
            take(*work);
        }
        lost_ += lostTimes ? 1 : 0;
        freeDetails(*record);
    }
    std::size_t dropped = 0;
    if (api_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
        lost_ += dropped;
    }
}

void Session::collect(bool last, const std::function<void(const DeviceWork&)>& take) {
    api_.cuptiActivityFlushAll(last ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
    BufferRing::Full buffer;
    while (buffers_.next(buffer)) {
        parse(buffer, take);
        buffers_.giveBack(buffer.data);
    }
}

class CuptiSource final : public WorkSource {
public:
    explicit CuptiSource(Session& session) : session_(session), lostBefore_(session.lost()) {
        session_.launches().beginRun();
        session_.collect(true, [](const DeviceWork&) {}); // what came after the end of the run before
    }
    CuptiSource(const CuptiSource&) = delete; // gives the session back
    CuptiSource& operator=(const CuptiSource&) = delete;
    ~CuptiSource() override {
        session_.setDetail(TraceDetail::Nothing);
        session_.taken = false;
    }
    void setDetail(TraceDetail detail) override { session_.setDetail(detail); }
    void collect(bool last, const std::function<void(const DeviceWork&)>& take) override {
        session_.collect(last, take);
    }
    std::uint64_t lost() const override { return session_.lost() - lostBefore_; }
    LaunchMap& launches() override { return session_.launches(); }

private:
    Session& session_;
    std::uint64_t lostBefore_;
};

} // namespace

std::unique_ptr<WorkSource> openCupti(std::string& why) {
    Session* session = Session::open(why);
    if (session == nullptr) {
        return nullptr;
    }
    if (session->taken.exchange(true)) {
        why = "another run of this process is being profiled; wait for its end";
        return nullptr;
    }
    return std::make_unique<CuptiSource>(*session);
}

} // namespace vitrine::profiler
