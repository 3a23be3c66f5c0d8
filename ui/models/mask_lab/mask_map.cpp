// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_map.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/integers.h"
#include "engine/attention/block_mask_cache.h"
#include "kernels/program/emitter.h"
#include "kernels/program/program_builder.h"
#include "ui/models/common/format.h"
#include "ui/models/mask_lab/mask_grid.h"

namespace vitrine::ui {

namespace {

using kernels::BlockMask;
using kernels::BlockRun;
using kernels::Program;
using kernels::ProgramNode;
using kernels::ProgramOp;
using kernels::ProgramType;

MaskProgramPtr everythingAllowed() {
    kernels::ProgramBuilder builder;
    auto made = std::make_shared<MaskProgram>();
    made->program = builder.finish(builder.constant(true));
    return made;
}

MaskHead headOf(const BlockMask& mask, std::int64_t batch, std::int64_t head) {
    const std::int64_t rows = mask.shape.queryBlocks();
    const std::int64_t plane =
        (mask.shape.batch == 1 ? 0 : batch) * mask.shape.heads + (mask.shape.heads == 1 ? 0 : head);
    MaskHead out;
    for (std::int64_t i = mask.rowOffsets[base::toIndex(plane * rows)];
         i < mask.rowOffsets[base::toIndex((plane + 1) * rows)]; ++i) {
        const BlockRun& run = mask.rowRuns[base::toIndex(i)];
        (run.full ? out.full : out.partial) += run.count;
    }
    out.empty = rows * mask.shape.keyBlocks() - out.full - out.partial;
    return out;
}

/// Integer loads that depend on the key alone (and on the plane): what a strip can show.
std::vector<std::int32_t> stripNodes(const Program& program) {
    const std::vector<unsigned> inputs = kernels::inputsOf(program);
    constexpr unsigned kElse = kernels::kOnQuery | kernels::kOnScore | kernels::kOnUpstream;
    std::vector<std::int32_t> nodes;
    std::vector<std::int32_t> captures;
    for (std::size_t i = 0; i < program.nodes.size() && nodes.size() < std::size_t{kMostMaskStrips}; ++i) {
        const ProgramNode& node = program.nodes[i];
        const bool along = (inputs[i] & kernels::kOnKey) != 0 && (inputs[i] & kElse) == 0;
        if (node.op != ProgramOp::Load || node.type == ProgramType::Float || !along ||
            std::find(captures.begin(), captures.end(), node.capture) != captures.end()) {
            continue;
        }
        nodes.push_back(static_cast<std::int32_t>(i));
        captures.push_back(node.capture);
    }
    return nodes;
}

MaskStrip stripOf(const MaskMap& map, std::int32_t node, const base::StopToken& stop) {
    const Program& program = map.mask->program;
    MaskStrip strip;
    strip.name = textOf(program.captures[base::toIndex(program.at(node).capture)].name);
    kernels::Interpreter<float> interpreter(program, map.mask->binding, {node});
    const bool boolean = program.at(node).type == ProgramType::Bool;
    for (std::int64_t key = 0; key < map.keys(); key += kernels::kInterpreterWidth) {
        base::throwIfStopped(stop);
        const int count = static_cast<int>(std::min<std::int64_t>(kernels::kInterpreterWidth, map.keys() - key));
        interpreter.run({map.batch, map.head, 0}, key, count, nullptr);
        for (int i = 0; i < count; ++i) {
            const std::int64_t value = boolean ? interpreter.booleans()[i] : interpreter.integers()[i];
            if (strip.runs.empty() || strip.runs.back().value != value) {
                strip.runs.push_back({key + i, key + i, value});
            }
            strip.runs.back().end = key + i + 1;
        }
    }
    return strip;
}

/// What differs from plane to plane.
void fillPlane(MaskMap& map, const base::StopToken& stop) {
    const BlockMask& blocks = *map.blocks;
    map.heads.clear();
    for (std::int64_t head = 0; head < blocks.shape.heads; ++head) {
        base::throwIfStopped(stop);
        map.heads.push_back(headOf(blocks, map.batch, head));
    }
    const MaskHead& here = map.heads[base::toIndex(blocks.shape.heads == 1 ? 0 : map.head)];
    map.full = here.full;
    map.partial = here.partial;
    map.empty = here.empty;
    map.columnFull.assign(base::toIndex(blocks.shape.keyBlocks()), 0);
    map.columnPartial.assign(base::toIndex(blocks.shape.keyBlocks()), 0);
    map.mostInColumn = 0;
    for (std::int64_t column = 0; column < blocks.shape.keyBlocks(); ++column) {
        for (const BlockRun& run : blocks.column(map.batch, map.head, column)) {
            (run.full ? map.columnFull : map.columnPartial)[base::toIndex(column)] += run.count;
        }
        map.mostInColumn =
            std::max<std::int64_t>(map.mostInColumn, std::int64_t{map.columnFull[base::toIndex(column)]} +
                                                         map.columnPartial[base::toIndex(column)]);
    }
    map.strips.clear();
    for (const std::int32_t node : stripNodes(map.mask->program)) {
        map.strips.push_back(stripOf(map, node, stop));
    }
}

void checkScoreTensor(const kernels::TensorView& tensor, const char* name, std::int64_t length) {
    if (tensor.empty() || tensor.shape.rank() != 4 || tensor.shape.count() <= 0 || tensor.shape[2] < length) {
        throw base::BadInput(fmt::format(
            "{}: scores need a tensor (batch, heads, positions, headDim) of at least {} positions; give one, or choose "
            "scores of zero",
            name, length));
    }
    switch (tensor.dtype) {
    case kernels::DType::F32:
    case kernels::DType::F64:
    case kernels::DType::BF16:
    case kernels::DType::F16:
        return;
    default:
        throw base::BadInput(fmt::format("{}: scores need floats; convert it to float32 or bfloat16", name));
    }
}

void checkScores(const MaskMap& map) {
    const MaskScores& scores = map.scores;
    if (scores.program != nullptr) {
        if (scores.program->program.type() != ProgramType::Float) {
            throw base::BadInput("score: the program gives no float; use it as the mask, or convert its result");
        }
        kernels::checkCaptures(scores.program->program, scores.program->binding);
    }
    if (scores.base != MaskScores::Base::Product) {
        return;
    }
    checkScoreTensor(scores.q, "q", map.queries());
    checkScoreTensor(scores.k, "k", map.keys());
    if (scores.q.shape[3] != scores.k.shape[3] || scores.q.shape[1] % scores.k.shape[1] != 0) {
        throw base::BadInput("k: its headDim is not q's, or its heads do not divide q's; give tensors of one model");
    }
}

/// Positions over a length: evenly spaced, and close around a place.
std::vector<std::int64_t> sampled(std::int64_t length, std::int64_t around) {
    constexpr std::int64_t kEven = 48;
    std::vector<std::int64_t> out;
    out.reserve(base::toIndex(kEven) + 128);
    for (std::int64_t i = 0; i < std::min(length, kEven); ++i) {
        out.push_back(length <= kEven ? i : i * (length - 1) / (kEven - 1));
    }
    for (std::int64_t step = 1; step < length; step *= 2) {
        out.insert(out.end(), {around - step, around + step});
    }
    out.push_back(around);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    std::erase_if(out, [&](std::int64_t position) { return position < 0 || position >= length; });
    return out;
}

void findScoreRange(MaskMap& map, const base::StopToken& stop) {
    checkScores(map);
    bool any = false;
    for (const std::int64_t query : sampled(map.queries(), map.queries() / 2)) {
        const std::vector<std::int64_t> keys = sampled(map.keys(), query);
        for (const float value : scoreGrid(map, {&query, 1}, keys, stop).values) {
            if (std::isfinite(value)) {
                map.scoreLow = any ? std::min<double>(map.scoreLow, value) : value;
                map.scoreHigh = any ? std::max<double>(map.scoreHigh, value) : value;
                any = true;
            }
        }
    }
    if (!any) {
        map.scoreLow = map.scoreHigh = 0;
    }
}

void checkPlane(const MaskMap& map) {
    const kernels::BlockMaskShape& shape = map.shape();
    if (map.batch < 0 || map.head < 0 || (shape.batch > 1 && map.batch >= shape.batch) ||
        (shape.heads > 1 && map.head >= shape.heads)) {
        throw base::BadInput(fmt::format("head: batch entry {}, head {} is not in the mask's {} x {}; choose one in it",
                                         map.batch, map.head, shape.batch, shape.heads));
    }
}

} // namespace

MaskProgramPtr maskProgram(engine::ChosenProgram program) {
    const auto keep = std::make_shared<const engine::ChosenProgram>(std::move(program));
    auto made = std::make_shared<MaskProgram>();
    made->program = keep->program;
    made->binding = keep->binding();
    made->owner = keep;
    return made;
}

MaskMapPtr makeMaskMap(const MaskMapQuery& request, base::ThreadPool& pool, base::ProgressSink* progress,
                       const base::StopToken& stop) {
    auto map = std::make_shared<MaskMap>();
    map->name = request.name;
    map->mask = request.mask != nullptr ? request.mask : everythingAllowed();
    map->scores = request.scores;
    map->batch = request.batch;
    map->head = request.head;
    const Program& program = map->mask->program;
    const base::TimeNs begin = base::monotonicNs();
    map->blocks =
        engine::BlockMaskCache::shared().get(program, map->mask->binding, request.shape, pool, progress, stop).mask;
    map->buildSeconds = static_cast<double>(base::monotonicNs() - begin) * 1e-9;
    checkPlane(*map);
    const unsigned inputs = kernels::inputsOf(program)[base::toIndex(program.result)];
    map->usesBatch = (inputs & kernels::kOnBatch) != 0;
    map->usesHead = (inputs & kernels::kOnHead) != 0;
    map->analysis = std::make_shared<const kernels::IntervalAnalysis>(program, map->mask->binding);
    map->rows = kernels::intervalRows(program);
    map->parts = maskParts(program, map->alternatives);
    fillPlane(*map, stop);
    findScoreRange(*map, stop);
    return map;
}

MaskMapPtr maskMapAt(const MaskMap& map, std::int64_t batch, std::int64_t head) {
    auto made = std::make_shared<MaskMap>(map);
    made->batch = batch;
    made->head = head;
    checkPlane(*made);
    fillPlane(*made, {});
    findScoreRange(*made, {});
    return made;
}

MaskMapPtr maskMapWithScores(const MaskMap& map, MaskScores scores) {
    auto made = std::make_shared<MaskMap>(map);
    made->scores = std::move(scores);
    findScoreRange(*made, {});
    return made;
}

double maskDensity(const MaskMap& map, base::ThreadPool& pool, const base::StopToken& stop) {
    return kernels::elementDensity(*map.blocks, map.mask->program, map.mask->binding, pool, stop);
}

} // namespace vitrine::ui
