// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs that did not do all of their work: out of memory, cancelled, failed or interrupted. Times of a part of the work
// are shorter than times of all of it, so they are never compared as gains. Pure functions; any thread.

#include <string>
#include <string_view>

#include "engine/workload/experiment/run_comparison.h"

namespace vitrine::engine {

/// How, where and why the run ended: "ran out of memory after 24,576 of 65,536 prompt tokens (scratch of 2.00 GiB found
/// no room)". Empty for a run that came to its end.
std::string unfinishedWords(const ComparedRun& run);

/// "B ran out of memory after ..., A did not": how two runs ended, one of which did not come to its end.
std::string unfinishedFate(const ComparedRun& a, const ComparedRun& b);
/// Why nothing is said of times and rates of such a pair; empty where both came to their end.
std::string partOfWorkSentence(const ComparedRun& a, const ComparedRun& b);

/// Whether both values of a result are those of work that was done whole, so that one may be better than the other. A
/// peak is also compared where the run that ended early already has the higher one.
bool isOfWholeWork(const ComparedRun& a, const ComparedRun& b, std::string_view path, double valueA, double valueB);

} // namespace vitrine::engine
