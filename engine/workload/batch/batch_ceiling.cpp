// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/batch_ceiling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "engine/workload/roofline/decode_roofline.h"

namespace vitrine::engine {
namespace {

std::int64_t promptOf(const TraceRow& row) {
    return row.promptLength > 0 ? row.promptLength : static_cast<std::int64_t>(row.tokens.size());
}

/// Mean tokens in the cache that a new token reads, itself included.
std::int64_t meanContext(const std::vector<TraceRow>& trace) {
    double read = 0;
    double tokens = 0;
    for (const TraceRow& row : trace) {
        const auto count = static_cast<double>(row.maxNewTokens);
        read += count * (static_cast<double>(promptOf(row)) + count / 2);
        tokens += count;
    }
    return std::max<std::int64_t>(1, tokens > 0 ? std::llround(read / tokens) : 1);
}

double stepSeconds(const Model& model, double rows, std::int64_t context, kernels::DType kvType,
                   const DeviceRates& rates) {
    const ModelConfig& config = model.config();
    const std::int64_t moeLayers = model.weightBytes().moeLayers;
    const double hit =
        moeLayers == 0 ? 0
                       : static_cast<double>(moeLayers) * expectedExperts(config.experts, config.expertsPerToken, rows);
    const double kv = rows * static_cast<double>(config.kvBytes(context, kvType));
    const double byBytes = rates.bytes > 0 ? decodeBytes(model, rows, hit, kv).total() / rates.bytes : 0;
    const double byFlops = rates.flops > 0 ? rows * stepFlops(config, context - 1, 1) / rates.flops : 0;
    return std::max(byBytes, byFlops);
}

} // namespace

std::vector<std::int32_t> rowsOfSteps(const std::vector<TraceRow>& trace, std::int32_t slots) {
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;
    for (std::int32_t slot = 0; slot < slots; ++slot) {
        free.push(0);
    }
    std::vector<std::int32_t> changes(1, 0);
    for (const TraceRow& row : trace) {
        const auto begin = static_cast<std::size_t>(free.top());
        const std::size_t end = begin + static_cast<std::size_t>(std::max<std::int64_t>(row.maxNewTokens, 0));
        free.pop();
        free.push(static_cast<std::int64_t>(end));
        changes.resize(std::max(changes.size(), end + 1));
        ++changes[begin];
        --changes[end];
    }
    std::int32_t running = 0;
    for (std::int32_t& change : changes) {
        running += change;
        change = running;
    }
    changes.pop_back(); // after the last step
    return changes;
}

BatchCeiling batchCeiling(const Model& model, const std::vector<TraceRow>& trace, std::int32_t slots,
                          kernels::DType kvType, const DeviceRates& rates) {
    BatchCeiling ceiling;
    const std::int64_t context = meanContext(trace);
    std::vector<double> floors; // by rows
    for (std::int32_t rows = 0; rows <= slots; ++rows) {
        floors.push_back(rows > 0 ? stepSeconds(model, rows, context, kvType, rates) : 0);
    }
    double seconds = 0;
    double tokens = 0;
    for (const std::int32_t rows : rowsOfSteps(trace, slots)) {
        seconds += floors[static_cast<std::size_t>(rows)];
        tokens += rows;
        ++ceiling.steps;
    }
    for (const TraceRow& row : trace) {
        // Its last token is a row of a step that counts already.
        const std::int64_t before = promptOf(row) - 1;
        seconds += before > 0 && rates.flops > 0 ? stepFlops(model.config(), 0, before) / rates.flops : 0;
    }
    if (floors.back() > 0 && seconds > 0) {
        ceiling.fullSlots = slots / floors.back();
        ceiling.trace = tokens / seconds;
    }
    return ceiling;
}

} // namespace vitrine::engine
