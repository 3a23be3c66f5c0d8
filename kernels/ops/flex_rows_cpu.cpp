// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/flex_rows.h"

#include <algorithm>
#include <numeric>

namespace vitrine::kernels {

namespace {

/// First run that ends behind `block`.
const BlockRun* firstRun(std::span<const BlockRun> runs, std::int64_t block) {
    return std::partition_point(runs.data(), runs.data() + runs.size(),
                                [&](const BlockRun& run) { return run.first + std::int64_t{run.count} <= block; });
}

} // namespace

bool anyRun(std::span<const BlockRun> runs, std::int64_t begin, std::int64_t end) {
    const BlockRun* run = firstRun(runs, begin);
    return run != runs.data() + runs.size() && run->first < end;
}

FlexMaskRows::FlexMaskRows(const FlexAttention& op, const std::optional<IntervalRows>& closedForm) : op_(op) {
    if (op.mask.empty()) {
        return;
    }
    if (op.blocks == nullptr && closedForm.has_value()) {
        low_.emplace(closedForm->low, op.mask.captures);
        high_.emplace(closedForm->high, op.mask.captures);
    } else {
        exact_.emplace(*op.mask.program, op.mask.captures);
    }
}

FlexMaskRows::Reach FlexMaskRows::reach(const ProgramRow& row) {
    low_->run(row, 0, 1, nullptr);
    high_->run(row, 0, 1, nullptr);
    return {std::max<std::int64_t>(0, low_->integers()[0]), std::min(op_.k.shape[2] - 1, high_->integers()[0])};
}

void FlexMaskRows::evaluate(const ProgramRow& row, std::int64_t key, std::int64_t end, std::uint8_t* allowed) {
    const int count = static_cast<int>(end - key);
    exact_->run(row, key, count, nullptr);
    std::copy_n(exact_->booleans(), count, allowed);
}

FlexAllowed FlexMaskRows::readBlocks(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed) {
    const BlockMaskShape& shape = op_.blocks->shape;
    const std::span<const BlockRun> runs = op_.blocks->row(row.batch, row.head, row.query / shape.queryBlock);
    const std::int64_t end = key + count;
    std::fill(allowed, allowed + count, std::uint8_t{0});
    for (const BlockRun* run = firstRun(runs, key / shape.keyBlock); run != runs.data() + runs.size(); ++run) {
        const std::int64_t from = std::max(key, run->first * shape.keyBlock);
        const std::int64_t to = std::min(end, (run->first + std::int64_t{run->count}) * shape.keyBlock);
        if (from >= to) {
            break;
        }
        if (run->full) {
            std::fill(allowed + (from - key), allowed + (to - key), std::uint8_t{1});
        } else {
            evaluate(row, from, to, allowed + (from - key));
        }
    }
    const int sum = std::accumulate(allowed, allowed + count, 0);
    return sum == 0 ? FlexAllowed::None : sum == count ? FlexAllowed::All : FlexAllowed::Some;
}

FlexAllowed FlexMaskRows::read(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed) {
    if (op_.mask.empty()) {
        return FlexAllowed::All;
    }
    if (op_.blocks != nullptr) {
        return readBlocks(row, key, count, allowed);
    }
    if (low_.has_value()) {
        const Reach keys = reach(row);
        if (keys.low <= key && keys.high >= key + count - 1) {
            return FlexAllowed::All;
        }
        if (keys.high < key || keys.low >= key + count || keys.low > keys.high) {
            return FlexAllowed::None;
        }
        for (int i = 0; i < count; ++i) {
            allowed[i] = key + i >= keys.low && key + i <= keys.high ? 1 : 0;
        }
        return FlexAllowed::Some;
    }
    evaluate(row, key, key + count, allowed);
    const int sum = std::accumulate(allowed, allowed + count, 0);
    return sum == 0 ? FlexAllowed::None : sum == count ? FlexAllowed::All : FlexAllowed::Some;
}

bool FlexMaskRows::any(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1,
                       std::int64_t key0, std::int64_t key1) {
    if (op_.blocks != nullptr) {
        const BlockMaskShape& shape = op_.blocks->shape;
        for (std::int64_t row = query0 / shape.queryBlock; row * shape.queryBlock < query1; ++row) {
            if (anyRun(op_.blocks->row(batch, head, row), key0 / shape.keyBlock,
                       (key1 + shape.keyBlock - 1) / shape.keyBlock)) {
                return true;
            }
        }
        return false;
    }
    if (!low_.has_value()) {
        return true;
    }
    for (std::int64_t query = query0; query < query1; ++query) {
        const Reach keys = reach({batch, head, query});
        if (keys.low <= keys.high && keys.low < key1 && keys.high >= key0) {
            return true;
        }
    }
    return false;
}

} // namespace vitrine::kernels
