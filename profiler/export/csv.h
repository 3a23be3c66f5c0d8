// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tables of a run as CSV (RFC 4180, UTF-8, "\n"): a head row, numbers as the C locale writes them, times in
// nanoseconds, sizes in bytes, empty where a value is unknown. The caller checks the stream's state.

#include <ostream>

namespace vitrine::profiler {

class RunTimeline;

/// id, name, category, space, bytes, address, born_ns, freed_ns, dtype, shape, scope, path, format
void writeAllocationsCsv(const RunTimeline& timeline, std::ostream& out);

/// id, parent, kind, name, index, tokens, begin_ns, end_ns, bytes, flops, path
void writeScopesCsv(const RunTimeline& timeline, std::ostream& out);

/// time_ns, name, value: by name, then by time
void writeCountersCsv(const RunTimeline& timeline, std::ostream& out);

/// lane, name, begin_ns, end_ns, bytes, flops, scope
void writeSpansCsv(const RunTimeline& timeline, std::ostream& out);

/// Of a run whose kernels were traced on a GPU: name, op, launches, total_ns, mean_ns, min_ns, max_ns, share (of the
/// time of all kernels), bytes, flops, bytes_per_second (0 where the op launched other kernels too)
void writeKernelsCsv(const RunTimeline& timeline, std::ostream& out);

// Of a batch that served requests (docs/event-streams.md says what the numbers are); other runs have the heads alone.

/// index, begin_ns, end_ns, decode_rows, prefill_rows, padding_rows, prefill_tokens, padding_tokens, sampled, queued,
/// running, preempted, used_pages, shared_pages, cached_pages, free_pages: a row for each step
void writeBatchStepsCsv(const RunTimeline& timeline, std::ostream& out);

/// slot, state (idle, prefill, decode, padding, preempted), request, begin_ns, end_ns, first_step, steps, tokens,
/// padding: by begin
void writeBatchSlotsCsv(const RunTimeline& timeline, std::ostream& out);

/// request, phase (arrived, admitted, first_token, preempted, resumed, finished, cancelled, refused), time_ns, slot,
/// step, tokens, reason: by time. Times below 0 are those of an earlier part of a server's session.
void writeBatchRequestsCsv(const RunTimeline& timeline, std::ostream& out);

/// time_ns, group, page, state (free, used, cached), owner, sequences: changes by time
void writeKvPagesCsv(const RunTimeline& timeline, std::ostream& out);

/// begin_ns, end_ns, records, memory_records: where records of the run were lost (base::GapEvent)
void writeGapsCsv(const RunTimeline& timeline, std::ostream& out);

/// begin_ns, end_ns, events, min_total, max_total, max_time_ns and the split at that instant by category, for `rows`
/// equal pieces of the run.
void writeTotalsCsv(const RunTimeline& timeline, int rows, std::ostream& out);

} // namespace vitrine::profiler
