// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The devices that an experiment runs on: the options tp, ep and devices.

#include <memory>
#include <span>
#include <vector>

#include "engine/parallel/shard_plan.h"
#include "kernels/context/device_group.h"

namespace vitrine::kernels {
struct ContextOptions;
} // namespace vitrine::kernels

namespace vitrine::engine {

class Experiment;

/// What tp and ep of an experiment say; one rank where its workload has no such options.
ParallelShape parallelShape(const Experiment& experiment);

/// Throws BadInput where `devices` does not name as many devices as there are ranks. `onHost`: ranks are threads of the
/// one CPU.
void checkDevices(const Experiment& experiment, bool onHost);

/// Reads as the context of the rank that leads.
class RunDevices {
public:
    /// A context for each rank, all with these options. CPU ranks share the threads and their cores.
    RunDevices(const kernels::ContextOptions& options, ParallelShape shape);
    /// A Meta context that stands for `rank` of the ranks, for plans.
    RunDevices(const kernels::ContextOptions& options, ParallelShape shape, int rank);

    kernels::Context& operator*() const { return group_->leader(); }
    kernels::Context* operator->() const { return &group_->leader(); }

private:
    std::unique_ptr<kernels::Communicator> lone_; ///< of a plan; outlives the context
    std::unique_ptr<kernels::DeviceGroup> group_;
};

} // namespace vitrine::engine
