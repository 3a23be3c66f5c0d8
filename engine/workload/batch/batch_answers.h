// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes the answers of a batch to a file: one JSON object on each line, in the order of arrival.
//   {"id", "ids", "finish_reason"}, with "text" where the model has a tokenizer and a request one; {"id", "ids": [],
//   "refused"}
// A run that is stopped or fails writes the answers so far: finish_reason is then "cancelled", "out_of_memory" or
// "failed", and "unfinished" for requests that had not arrived yet.

#include <string>
#include <vector>

#include "engine/generation/batch_engine.h"
#include "engine/workload/batch/request_trace.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// Does nothing for an empty path. Throws BadInput when the file cannot be written.
void writeAnswers(const std::string& path, const BatchEngine& engine, const std::vector<TraceRow>& rows, bool hasText);

} // namespace vitrine::engine
