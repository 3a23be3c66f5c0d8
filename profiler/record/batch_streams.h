// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The streams of a batch that serves requests: steps, slots, requests, pages of the KV cache. Parts of streams.h's
// encodeBatch and decodeInto, with their rules.

#include <vector>

#include "profiler/record/column_io.h"
#include "profiler/record/streams.h"

namespace vitrine::profiler {

void encodeServing(const EventBatch& batch, ChunkNumbers& numbers, std::vector<base::ColumnChunk>& out);

void decodeBatchSteps(const ChunkReader& in, EventBatch& batch);
void decodeSlotSpans(const ChunkReader& in, EventBatch& batch);
void decodeRequests(const ChunkReader& in, EventBatch& batch);
void decodeKvPages(const ChunkReader& in, EventBatch& batch);

} // namespace vitrine::profiler
