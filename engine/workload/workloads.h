// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The workloads that come with the engine. Each is defined in a source file of its own below engine/workload.

#include "engine/workload/workload_table.h"

namespace vitrine::engine {

extern const Workload kGenerateWorkload;
extern const Workload kLoadWorkload;
extern const Workload kLogitsWorkload;
extern const Workload kTokenizeWorkload;
extern const Workload kSynthesizeWorkload;
extern const Workload kBenchWorkload;
extern const Workload kAttentionWorkload;
extern const Workload kBatchWorkload;
extern const Workload kServeWorkload;

} // namespace vitrine::engine
