// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The backend that computes nothing and takes no memory: a device profile's allocations and times.

#include "base/clock.h"
#include "kernels/core/device_traits.h"

namespace vitrine::kernels {

/// Has virtual addresses and virtual time. Each stream is a clock, and an op adds its roofline time to the clock of its
/// stream.
class MetaContext final : public base::Clock {
public:
    explicit MetaContext(const DeviceTraits& traits) : traits_(traits) {}
    base::TimeNs now() const override { return compute_ > copy_ ? compute_ : copy_; }
    base::TimeBase timeBase() const override { return base::TimeBase::Virtual; }

    void addCompute(double seconds);
    void addCopy(double seconds);
    void joinStreams(); ///< both streams wait for the later one
    base::TimeNs opsEnd() const { return compute_; }
    void holdOps(base::TimeNs until) {
        compute_ = compute_ > until ? compute_ : until;
    } ///< ops begin then at the earliest
    const DeviceTraits& traits() const { return traits_; }

private:
    DeviceTraits traits_;
    base::TimeNs compute_ = 0;
    base::TimeNs copy_ = 0;
};

} // namespace vitrine::kernels
