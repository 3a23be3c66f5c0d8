// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two runs in three sentences, the same on every screen and in the terminal. The first says the largest change, with
// its cause where the records of both runs account for four fifths of it. Pure functions; any thread.

#include <string>

#include "engine/workload/experiment/run_comparison.h"

namespace vitrine::engine {

struct ComparisonWords {
    std::string sentence; ///< "B peaks 1.40 GiB lower and fits 16 GiB: kv_cache is 0.70 GiB less (kv_dtype int8), ..."
    std::string other;    ///< the largest change in the other direction; "Nothing else changed beyond the noise."
    std::string answers;  ///< that of answer_words.h
};
/// `results` are those of compareResults. Where all is incomparable the sentence is that of incomparableSentence and
/// nothing else is said.
ComparisonWords comparisonWords(const ComparedRun& a, const ComparedRun& b, const std::vector<ResultChange>& results);

} // namespace vitrine::engine
