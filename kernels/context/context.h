// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Contexts are backends. Engine code takes Context& and is never templated on a backend.
//
// ctx.run(op) calls check(op), opens a trace scope with cost(op, traits), and calls the overload execute(XContext&,
// const Op&) of its backend. The header of an op declares what kernels/core/op.h says; a backend without an overload
// does not compile. A context and everything made with it belong to one thread.

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread_pool.h"
#include "kernels/core/backend.h"
#include "kernels/core/communicator.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/op.h"
#include "kernels/core/op_rates.h"
#include "kernels/core/tracer.h"

namespace vitrine::kernels {

class CudaEvent;
class CudaGraph;
class DeviceGroup;
class KernelLibrary;
class KeptState;
class Memory;
struct ContextOptions;
enum class SimdLevel : std::uint8_t;

/// What a context can do. Code above the kernels asks here for what it needs; it never asks which backend it has. What
/// a kind of device does is in the traits instead (DeviceFeatures), because Meta can have the traits of another device.
struct Capabilities {
    bool computesValues = true;   ///< false: tensors have addresses and sizes, and downloads give zeros
    bool virtualTime = false;     ///< time passes only when ops or copies run
    bool runsOnHost = false;      ///< threads of hostPool() run the ops, which are done when run() returns
    bool runsAhead = false;       ///< run() launches ops on a device with memory of its own and returns while they run
    bool replaysGraphs = false;   ///< GraphCapture and replay() work
    bool compilesKernels = false; ///< there is a kernelLibrary(), and Prefetch compiles kernels
};

/// A point in the order of a context's ops: after all ops that the context was given before it.
class Mark {
public:
    void wait() const; ///< until the ops are done; throws DeviceFault
    /// Seconds between two marks of one context, on the device's clock. Waits for this mark.
    double secondsSince(const Mark& earlier) const;

private:
    friend class Context;
    std::shared_ptr<const CudaEvent> event_; ///< of a context that runs ahead
    base::TimeNs time_ = 0;                  ///< of the others
};

class Context {
public:
    explicit Context(const ContextOptions& options);
    ~Context();
    Context(const Context&) = delete; // tensors and models hold its address
    Context& operator=(const Context&) = delete;

    Backend backend() const;
    bool isMeta() const { return backend() == Backend::Meta; }
    const Capabilities& can() const { return capabilities_; }
    const DeviceTraits& traits() const { return traits_; }
    Memory& memory() { return *memory_; }
    Tracer& tracer() { return *tracer_; }
    RunTrace& runTrace() { return trace_ != nullptr ? *trace_ : *ownTrace_; }
    /// The ranks of the run as this one sees them; null: it is alone.
    Communicator* communicator() const { return communicator_; }
    /// The devices of the run, on the context that leads them; null elsewhere.
    DeviceGroup* group() const { return group_; }
    int rank() const { return communicator_ == nullptr ? 0 : communicator_->rank(); }
    int ranks() const { return communicator_ == nullptr ? 1 : communicator_->size(); }
    const base::Clock& clock() const { return *clock_; }
    const base::StopToken& stop() const { return stop_; }
    KeptState* kept() const { return kept_; } ///< null where nothing is kept
    void throwIfStopped() const { base::throwIfStopped(stop_); }

    /// Runs `op`; see the top of this file. Throws base::Internal when check finds a mistake of the caller.
    template <class Op> void run(const Op& op) {
        check(op);
        const Cost opCost = cost(op, traits_);
        const base::ScopeId scope = beginOp(Op::kName, categoryOfOp<Op>());
        try {
            if (cuda_ != nullptr) {
                execute(*cuda_, op);
            } else if (meta_ != nullptr) {
                execute(*meta_, op);
            } else {
                execute(*cpu_, op);
            }
        } catch (...) {
            tracer_->noteFailure();
            endOp(scope, opCost);
            throw;
        }
        chargeMeta(Op::kName, opCost);
        endOp(scope, opCost);
    }

    /// Copies `bytes` between host memory and the context's memory; on Meta only the clock advances.
    void upload(const void* host, void* device, std::uint64_t bytes);
    void download(const void* device, void* host, std::uint64_t bytes);
    /// Copies inside the context's memory, in order with its ops; the two must not overlap.
    void copy(const void* from, void* to, std::uint64_t bytes);
    /// As download(), but returns at once where the context runs ahead: the bytes are in place when a later mark is
    /// reached. `host` is pinned memory (Memory::host) and stays until then.
    void downloadLater(const void* device, void* host, std::uint64_t bytes);

    Mark mark();
    void synchronize(); ///< waits for every op; throws DeviceFault
    /// Runs a captured graph, in order with the ops. REQUIRES can().replaysGraphs.
    void replay(const CudaGraph& graph);

    /// In virtual time: ops and copies after this call begin when all earlier ops and copies have ended. Does nothing
    /// in real time.
    void joinStreams();
    /// A step begins whose ops reach the device in this way, for the times of a plan. Does nothing in real time.
    void beginVirtualStep(LaunchKind kind);
    /// Whether all rows of a step are copies of one request, which choose the same experts, for the times of a plan.
    void expectCopies(bool copies) { copies_ = copies; }
    /// Passes the time that the first steps of this kind take more than later ones, once for each number of rows that
    /// graphs are made for. `layers`: of the model. Does nothing in real time.
    void passFirstUse(LaunchKind kind, std::int64_t layers, std::int64_t rows = 0);
    /// Virtual time that was needed for what happens once. A step in which it grows is like no later one.
    base::TimeNs onceTime() const;
    /// How well the time of the ops so far is known. All zero in real time.
    PricedTime pricedTime() const;
    /// Of the virtual time of ops so far: that in which ranks exchange. 0 in real time.
    double exchangeSeconds() const;
    /// Advances the clock of ops (or of copies, below) by the time of work that is not run, and of which ranks exchange
    /// for `exchange` seconds. REQUIRES can().virtualTime.
    void passTime(double seconds, double exchange = 0);
    void passCopyTime(double seconds);
    /// Waits until clock() shows `time`. Virtual time is moved on instead, by at least a nanosecond. Throws Cancelled.
    void waitUntil(base::TimeNs time);

    /// The threads that run the ops, and the level of their SIMD instructions. REQUIRES can().runsOnHost.
    base::ThreadPool& hostPool();
    SimdLevel simd();
    /// Null where no kernels are compiled.
    KernelLibrary* kernelLibrary();
    /// Waits for what Prefetch started. Reports progress "Compiling kernels"; `progress` may be null.
    void waitForKernels(base::ProgressSink* progress);

    // For kernels and their tests.
    CpuContext* cpu() { return cpu_.get(); }
    MetaContext* meta() { return meta_.get(); }
    CudaContext* cuda() { return cuda_.get(); }

private:
    base::ScopeId beginOp(std::string_view name, base::MemoryCategory category);
    void endOp(base::ScopeId scope, const Cost& cost);
    void chargeMeta(std::string_view op, const Cost& cost);

    // One of the three is there. They stand first: Meta is the clock of all below.
    std::unique_ptr<CpuContext> cpu_;
    std::unique_ptr<MetaContext> meta_;
    std::unique_ptr<CudaContext> cuda_;
    Capabilities capabilities_;
    DeviceTraits traits_;
    bool copies_ = false;
    std::unique_ptr<base::Clock> ownClock_;
    const base::Clock* clock_ = nullptr;
    std::unique_ptr<base::TraceSink> ownSink_;
    RunTrace* trace_ = nullptr;
    std::unique_ptr<RunTrace> ownTrace_;
    Communicator* communicator_ = nullptr;
    friend class DeviceGroup;
    DeviceGroup* group_ = nullptr;
    std::unique_ptr<Tracer> tracer_;
    std::unique_ptr<Memory> memory_;
    friend class StopPause;
    base::StopToken stop_;
    KeptState* kept_ = nullptr;
};

/// While it lives, the kernels of ops are compiled instead of run, several at the same time. The addresses of the ops'
/// tensors need not exist. The context must not be used for anything else meanwhile.
class Prefetch {
public:
    explicit Prefetch(Context& context);
    ~Prefetch();
    Prefetch(const Prefetch&) = delete; // one begin, one end
    Prefetch& operator=(const Prefetch&) = delete;

    template <class Op> void add(const Op& op) {
        if (gpu_ != nullptr) {
            execute(*gpu_, op);
        }
    }

private:
    CudaContext* gpu_;
};

/// Captures ops as a graph: what the context is given while a GraphCapture is open becomes part of the graph and does
/// not run. A capture that is not ended is dropped. Nothing may allocate or wait meanwhile. REQUIRES
/// can().replaysGraphs.
class GraphCapture {
public:
    explicit GraphCapture(Context& context);
    ~GraphCapture();
    GraphCapture(const GraphCapture&) = delete; // one begin, one end
    GraphCapture& operator=(const GraphCapture&) = delete;
    CudaGraph end();

private:
    CudaContext& gpu_;
};

/// While it lives, the context does not see that it is to stop: for work that must be whole once it has begun.
class StopPause {
public:
    explicit StopPause(Context& context) : context_(context), stop_(std::exchange(context.stop_, {})) {}
    ~StopPause() { context_.stop_ = std::move(stop_); }
    StopPause(const StopPause&) = delete; // one begin, one end
    StopPause& operator=(const StopPause&) = delete;

private:
    Context& context_;
    base::StopToken stop_;
};

} // namespace vitrine::kernels
