// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tables and sentences about batches: two of them side by side, one request, one slot, and the twins of the pictures.
// Pure functions; any thread.

#include "ui/models/batching/batch_summary.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

/// "1.65x" and the sentence below it.
struct BatchText {
    QString number, sentence;
};
BatchText batchText(const BatchPair& pair);
/// "64 of 64 finished in both   Same tokens: yes"
QString batchAgreement(const BatchPair& pair);
/// "971 decode steps, slot utilization 52.2 %, 17 preempted, done at 4.03 s"
QString sideText(const BatchSide& side);

/// "Request 31: prompt 139, output 40 tokens, TTFT 238 ms, end to end 1.34 s"
QString requestText(const BatchRequest& request);
QString slotStateWord(base::SlotState state);

/// Name, A, B, A to B.
FlatTreePtr batchThroughputTable(const BatchPair& pair);
FlatTreePtr batchLatencyTable(const BatchPair& pair);
/// Name, A, B: one request in both runs, all that is known of it.
FlatTreePtr batchRequestTable(const BatchPair& pair, std::int32_t request);
/// Name, value: what a slot did in all its steps.
FlatTreePtr batchSlotTable(const BatchSide& side, std::int32_t slot);

/// Twins: a row for each stretch of a slot, a row for each request; at most `limit` rows.
FlatTreePtr slotTwin(const BatchPair& pair, std::size_t limit = 20'000);
FlatTreePtr requestTwin(const BatchPair& pair, std::size_t limit = 20'000);

} // namespace vitrine::ui
