// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The backend that computes nothing and takes no memory: a device profile's allocations and times.

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/op.h"
#include "kernels/core/op_rates.h"

namespace vitrine::kernels {

/// Has virtual addresses and virtual time. Each stream is a clock, and an op adds its time to the clock of its stream
/// (opSeconds of kernels/core/op.h). Where the cost of launches was measured, the host is a third clock: an op begins
/// when the device is free and the host has launched it, so steps of many small ops take the time of the host.
class MetaContext final : public base::Clock {
public:
    explicit MetaContext(const DeviceTraits& traits) : traits_(traits) {}
    base::TimeNs now() const override { return compute_ > copy_ ? compute_ : copy_; }
    base::TimeBase timeBase() const override { return base::TimeBase::Virtual; }

    void addCompute(double seconds);
    /// The same, of something that later steps do not do again.
    void addOnce(double seconds);
    /// How the ops that follow reach the device, and what each step costs beside them.
    void beginStep(LaunchKind kind);
    /// Passes what the first steps of this kind take more than later ones, once for each number of rows that graphs are
    /// made for; libraries are awake by the second number. `layers`: of the model.
    void passFirstUse(LaunchKind kind, std::int64_t layers, std::int64_t rows = 0);
    void addCopy(double seconds);
    void joinStreams(); ///< both streams wait for the later one
    base::TimeNs opsEnd() const { return compute_; }
    void holdOps(base::TimeNs until) {
        compute_ = compute_ > until ? compute_ : until;
    } ///< ops begin then at the earliest
    const DeviceTraits& traits() const { return traits_; }

    /// Nothing of what happens on it is recorded, so work that repeats itself may be jumped over.
    void setUnwatched(bool unwatched) { unwatched_ = unwatched; }
    bool unwatched() const { return unwatched_; }
    struct Times {
        base::TimeNs compute = 0, copy = 0, host = 0;
        base::TimeNs ops = 0, far = 0, sheet = 0; ///< see PricedTime
        base::TimeNs exchanges = 0;
    };
    Times times() const { return {compute_, copy_, host_, ops_, far_, sheet_, exchanges_}; }
    /// Lets the time pass that was needed since `begin`, so many times more.
    void passAgain(const Times& begin, std::int64_t times);

    /// Charges an op of this time, which secondsOf() gave.
    void charge(std::string_view op, const OpSeconds& time);
    /// All zero on a device of which nothing was measured.
    PricedTime pricedTime() const;
    /// Of the time of ops: that in which ranks exchange.
    base::TimeNs exchangeTime() const { return exchanges_; }
    void addExchange(double seconds);
    /// What the host needed for first launches. A step in which it grows is like no later one.
    base::TimeNs onceTime() const { return once_; }

    /// opSeconds() on this device; `wake` is set once for each op. Steps repeat their calls, so a measured time is
    /// looked up once for calls that move and compute the same. `op` is the name that the op itself has.
    OpSeconds secondsOf(std::string_view op, const Cost& cost);

private:
    /// As addCompute, for an op whose time was measured without the wait before it.
    void addOp(double seconds);

    DeviceTraits traits_;
    using Call =
        std::tuple<const char*, RateClass, std::uint64_t, std::uint64_t, int>; ///< name, class, bytes, FLOPs, ranks
    std::map<Call, OpSeconds> measured_;
    std::set<std::pair<const char*, RateClass>> awake_; ///< ops whose first launch has passed
    base::TimeNs once_ = 0;
    base::TimeNs ops_ = 0, far_ = 0, sheet_ = 0;
    base::TimeNs exchanges_ = 0;
    using OpTimes = std::vector<std::pair<std::string_view, base::TimeNs>>; ///< by the name that the op itself has
    OpTimes farOps_, sheetOps_;                                             ///< without what passAgain() repeats
    base::TimeNs compute_ = 0;
    base::TimeNs copy_ = 0;
    bool unwatched_ = false;
    base::TimeNs host_ = 0; ///< when the host has launched the last op
    LaunchKind kind_ = LaunchKind::Launched;
    std::set<std::pair<LaunchKind, std::int64_t>> begun_; ///< with the rows: a step of it has begun
};

} // namespace vitrine::kernels
