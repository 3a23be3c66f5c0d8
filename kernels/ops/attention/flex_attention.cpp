// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_attention.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "kernels/ops/attention/flex_device_scratch.h"
#include "kernels/ops/attention/flex_scratch.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/program/interpreter.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kCountedBlock = 128;

void checkInputs(const OpCheck& rule, const FlexAttention& op) {
    rule.shape(op.q, "q", {OpCheck::kAny, OpCheck::kAny, OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.q, "q");
    rule.lastContiguous(op.q, "q");
    const std::int64_t batch = op.q.shape[0];
    const std::int64_t heads = op.q.shape[1];
    const std::int64_t queries = op.q.shape[2];
    const std::int64_t dim = op.q.shape[3];
    rule.shape(op.k, "k", {batch, OpCheck::kAny, OpCheck::kAny, dim});
    rule.shape(op.v, "v", {batch, op.k.shape[1], op.k.shape[2], dim});
    for (const auto& [tensor, name] : {std::pair{&op.k, "k"}, std::pair{&op.v, "v"}}) {
        rule.dtype(*tensor, name, op.q.dtype);
        rule.lastContiguous(*tensor, name);
    }
    rule.require(op.k.shape[1] > 0 && heads % op.k.shape[1] == 0, "q", "heads are no multiple of k's heads");
    rule.require(dim > 0, "q", "headDim is 0");
    if (!op.sinks.empty()) {
        rule.shape(op.sinks, "sinks", {heads});
        rule.floating(op.sinks, "sinks");
    }
    rule.programs(op.score, op.mask);
    if (op.blocks != nullptr) {
        const BlockMaskShape& shape = op.blocks->shape;
        rule.require(!op.mask.empty(), "blocks", "there is no mask");
        rule.require(shape.queries == queries && shape.keys == op.k.shape[2], "blocks", "made for other lengths");
        rule.require(shape.batch == 1 || shape.batch == batch, "blocks", "made for another batch");
        rule.require(shape.heads == 1 || shape.heads == heads, "blocks", "made for other heads");
    }
}

void checkOutputs(const OpCheck& rule, const FlexAttention& op) {
    rule.shape(op.out, "out", {op.q.shape[0], op.q.shape[1], op.q.shape[2], op.q.shape[3]});
    rule.dtype(op.out, "out", op.q.dtype);
    rule.lastContiguous(op.out, "out");
    if (!op.lse.empty()) {
        rule.shape(op.lse, "lse", {op.q.shape[0], op.q.shape[1], op.q.shape[2]});
        rule.dtype(op.lse, "lse", op.q.dtype == DType::F64 ? DType::F64 : DType::F32);
        rule.contiguous(op.lse, "lse");
    }
}

/// Elements of a block mask's runs, times how often it is repeated.
double maskedElements(const FlexAttention& op) {
    const BlockMaskShape& shape = op.blocks->shape;
    const std::int64_t repeats = op.q.shape[0] * op.q.shape[1] / (shape.batch * shape.heads);
    double sum = 0;
    for (std::int64_t plane = 0; plane < shape.batch * shape.heads; ++plane) {
        for (std::int64_t row = 0; row < shape.queryBlocks(); ++row) {
            const std::int64_t height = std::min(shape.queryBlock, shape.queries - row * shape.queryBlock);
            for (const BlockRun& run : op.blocks->row(plane / shape.heads, plane % shape.heads, row)) {
                const std::int64_t end = std::min((run.first + std::int64_t{run.count}) * shape.keyBlock, shape.keys);
                sum += static_cast<double>(height) * static_cast<double>(end - run.first * shape.keyBlock);
            }
        }
    }
    return sum * static_cast<double>(repeats);
}

/// Elements of the blocks of one plane. `ends` gives the first and the last key that a query sees.
template <class Ends> double planeElements(std::int64_t queries, std::int64_t keys, const Ends& ends) {
    double sum = 0;
    for (std::int64_t begin = 0; begin < queries; begin += kCountedBlock) {
        const std::int64_t end = std::min(begin + kCountedBlock, queries);
        std::int64_t low = keys;
        std::int64_t high = -1;
        for (std::int64_t query = begin; query < end; ++query) {
            const auto [lowest, highest] = ends(query);
            const std::int64_t first = std::max<std::int64_t>(0, lowest);
            const std::int64_t last = std::min(keys - 1, highest);
            if (first <= last) {
                low = std::min(low, first);
                high = std::max(high, last);
            }
        }
        if (low <= high) {
            low = low / kCountedBlock * kCountedBlock;
            high = std::min(keys, (high / kCountedBlock + 1) * kCountedBlock);
            sum += static_cast<double>(end - begin) * static_cast<double>(high - low);
        }
    }
    return sum;
}

/// Of a mask whose rows are intervals. Captured tensors may lie on a device, so an end that needs them counts as if it
/// forbade nothing. Ends that follow from the position alone are asked once for all planes.
double intervalElements(const FlexAttention& op, const ProgramAnalysis& mask) {
    const std::int64_t queries = op.q.shape[2];
    const std::int64_t keys = op.k.shape[2];
    const bool captures = !op.mask.program->captures.empty();
    if (captures || (mask.low && mask.high)) {
        return static_cast<double>(op.q.shape[0] * op.q.shape[1]) *
               planeElements(queries, keys, [&](std::int64_t query) {
                   return std::pair(mask.low ? mask.low->at(query) : 0, mask.high ? mask.high->at(query) : keys - 1);
               });
    }
    Interpreter<double> lows(mask.rows.low, op.mask.captures);
    Interpreter<double> highs(mask.rows.high, op.mask.captures);
    double sum = 0;
    for (std::int64_t batch = 0; batch < op.q.shape[0]; ++batch) {
        for (std::int64_t head = 0; head < op.q.shape[1]; ++head) {
            sum += planeElements(queries, keys, [&](std::int64_t query) {
                lows.run({batch, head, query}, 0, 1, nullptr);
                highs.run({batch, head, query}, 0, 1, nullptr);
                return std::pair(lows.integers()[0], highs.integers()[0]);
            });
        }
    }
    return sum;
}

} // namespace

double computedElements(const FlexAttention& op) {
    if (op.blocks != nullptr) {
        return maskedElements(op);
    }
    if (!op.mask.empty()) {
        if (const AnalysisOf mask(op.mask); mask->exact) {
            return intervalElements(op, *mask);
        }
    }
    return static_cast<double>(op.q.shape[0] * op.q.shape[1]) * static_cast<double>(op.q.shape[2]) *
           static_cast<double>(op.k.shape[2]);
}

void check(const FlexAttention& op) {
    const OpCheck rule(FlexAttention::kName);
    checkInputs(rule, op);
    checkOutputs(rule, op);
    for (const auto& [tensor, name] : {std::pair{&op.q, "q"}, std::pair{&op.k, "k"}, std::pair{&op.v, "v"}}) {
        rule.disjoint(op.out, "out", *tensor, name);
    }
}

Cost cost(const FlexAttention& op, const DeviceTraits& traits) {
    Cost cost;
    cost.bytesRead = op.q.bytes() + op.k.bytes() + op.v.bytes();
    cost.bytesWritten = op.out.bytes() + (op.lse.empty() ? 0 : op.lse.bytes());
    cost.flops = static_cast<std::uint64_t>(4.0 * computedElements(op) * static_cast<double>(op.q.shape[3]));
    cost.computeType = op.q.dtype;
    cost.share = traits.attentionShare(op.q.dtype, op.q.shape[3], false);
    cost.rateClass = attentionRateClass(op.q.shape[3], op.q.dtype);
    return cost;
}

std::uint64_t scratch(const FlexAttention& op, const DeviceTraits& traits) {
    return traits.features.kernelScratch ? FlexForwardScratch(op, nullptr).bytes : 0;
}

void check(const FlexAttentionBackward& op) {
    const OpCheck rule(FlexAttentionBackward::kName);
    const FlexAttention& forward = op.forward;
    checkInputs(rule, forward);
    checkOutputs(rule, forward);
    rule.present(forward.lse, "lse");
    const auto like = [&](const TensorView& tensor, std::string_view name, const TensorView& of) {
        rule.shape(tensor, name, {of.shape[0], of.shape[1], of.shape[2], of.shape[3]});
        rule.dtype(tensor, name, of.dtype);
        rule.lastContiguous(tensor, name);
    };
    like(op.gradOut, "gradOut", forward.out);
    like(op.dq, "dq", forward.q);
    like(op.dk, "dk", forward.k);
    like(op.dv, "dv", forward.v);
    const auto accumulated = [&](const TensorView& tensor, const std::string& name) {
        rule.require(tensor.dtype == DType::F32 || tensor.dtype == DType::F64, name, "neither float32 nor float64");
        rule.contiguous(tensor, name);
    };
    if (!op.dSinks.empty()) {
        rule.require(!forward.sinks.empty(), "dSinks", "there are no sinks");
        rule.shape(op.dSinks, "dSinks", {forward.q.shape[1]});
        accumulated(op.dSinks, "dSinks");
    }
    const std::size_t captures = forward.score.empty() ? 0 : forward.score.program->captures.size();
    rule.require(op.dCaptures.empty() || op.dCaptures.size() == captures, "dCaptures", "not one for each capture");
    for (std::size_t i = 0; i < op.dCaptures.size(); ++i) {
        const ProgramCapture& capture = forward.score.program->captures[i];
        if (!op.dCaptures[i].empty()) {
            rule.require(capture.differentiable, "d." + capture.name, "the program takes no gradient of it");
            rule.require(op.dCaptures[i].shape == forward.score.captures.tensors[i].shape, "d." + capture.name,
                         "its shape is not the capture's");
            accumulated(op.dCaptures[i], "d." + capture.name);
        }
    }
}

Cost cost(const FlexAttentionBackward& op, const DeviceTraits& traits) {
    Cost cost = kernels::cost(op.forward, traits);
    cost.bytesRead += op.forward.out.bytes() + op.gradOut.bytes() + op.forward.lse.bytes();
    cost.bytesWritten = op.dq.bytes() + op.dk.bytes() + op.dv.bytes();
    cost.flops = cost.flops / 2 * 5;
    cost.share = traits.attentionShare(op.forward.q.dtype, op.forward.q.shape[3], true);
    cost.rateClass = attentionRateClass(op.forward.q.shape[3], op.forward.q.dtype);
    return cost;
}

std::uint64_t scratch(const FlexAttentionBackward& op, const DeviceTraits& traits) {
    return traits.features.kernelScratch
               ? FlexBackwardScratch(op, hasHopperForm(traits.arch == "sm_90a" ? 9 : 0, op.forward), nullptr).bytes
               : FlexScratch(op, nullptr).bytes;
}

} // namespace vitrine::kernels
