// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Gives each test its own Memory, on the host or virtual, and the events that it records.

#include <gtest/gtest.h>
#include <memory>

#include "kernels/memory/memory.h"
#include "kernels/memory/physical.h"
#include "tests/kernels/core/recording_sink.h"

namespace vitrine::kernels {

struct MemoryTest : ::testing::Test {
    RecordingSink sink;
    ManualClock clock;
    RunTrace runTrace{sink};
    Tracer tracer{runTrace, clock, ProfileLevel::Full};

    std::unique_ptr<Memory> make(bool meta, const MemoryOptions& options) {
        const auto resource = [&](base::MemorySpace space) {
            return meta ? makeMetaResource(space) : makeHostResource(space);
        };
        return std::make_unique<Memory>(resource(base::MemorySpace::Device), resource(base::MemorySpace::Host), options,
                                        tracer);
    }
};

} // namespace vitrine::kernels
