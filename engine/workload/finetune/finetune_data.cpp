// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/finetune/finetune_data.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/checkpoint/token_rows.h"

namespace vitrine::engine {

namespace {

using TokenRows = std::vector<std::vector<std::int32_t>>;

TokenRows tokenRows(const Run& run, const ModelSource& source) {
    if (!run.spec.text("tokens_file").empty()) {
        const std::string path = run.spec.text("tokens_file");
        TokenRows rows = readTokenRows(path);
        checkTokenIds(rows, source.config.vocab, path + ": input_ids");
        return rows;
    }
    TokenRows rows;
    const std::int64_t count = run.spec.maybeInteger("batch").value_or(1);
    for (std::int64_t i = 0; i < count; ++i) {
        rows.push_back(arbitraryTokens(run.spec.integer("prompt_length"), source.config.vocab, run.seed(),
                                       static_cast<std::uint32_t>(i)));
    }
    return rows;
}

} // namespace

TrainingBatch FinetuneData::microBatch(std::int64_t step, std::int64_t micro, std::int64_t perStep) const {
    TrainingBatch out;
    const auto count = static_cast<std::int64_t>(training.size());
    const std::int64_t first = ((step - 1) * perStep + micro) * batch;
    for (std::int64_t i = first; i < first + batch; ++i) {
        out.append(training[static_cast<std::size_t>(i % count)]);
    }
    return out;
}

std::int64_t FinetuneData::longestSequence() const {
    std::size_t longest = 0;
    for (const TrainingBatch& sequence : training) {
        longest = std::max(longest, sequence.tokens.size());
    }
    return static_cast<std::int64_t>(longest);
}

FinetuneData makeFinetuneData(const Run& run, const ModelSource& source) {
    FinetuneData out;
    for (const std::vector<std::int32_t>& row : tokenRows(run, source)) {
        out.training.emplace_back().addDocument(row);
    }
    out.batch = run.spec.maybeInteger("batch").value_or(static_cast<std::int64_t>(out.training.size()));
    return out;
}

} // namespace vitrine::engine
