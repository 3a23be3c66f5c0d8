// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The workloads that come with the engine. Each is defined in a folder of its own or beside its like. The table of
// workloads names them by these declarations, so it includes nothing of those folders.

#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

extern const Workload kGenerateWorkload;
extern const Workload kLoadWorkload;
extern const Workload kLogitsWorkload;
extern const Workload kTokenizeWorkload;
extern const Workload kSynthesizeWorkload;
extern const Workload kConvertWorkload;
extern const Workload kPrecisionWorkload;
extern const Workload kBenchWorkload;
extern const Workload kAttentionWorkload;
extern const Workload kBatchWorkload;
extern const Workload kServeWorkload;
extern const Workload kFinetuneWorkload;
extern const Workload kRlWorkload;
extern const Workload kScoreWorkload;

} // namespace vitrine::engine
