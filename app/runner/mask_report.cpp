// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/mask_report.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/program/emitter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestExport = std::uint64_t{4} << 30;

double secondsSince(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The arrays under PyTorch's names; blocks that the lengths cut count as partial, as they do there.
void writeArrays(const kernels::BlockMask& mask, const std::string& path) {
    const kernels::DenseBlockMask dense = kernels::denseBlockMask(mask, true, kLargestExport);
    const kernels::BlockMaskShape& shape = mask.shape;
    const std::int64_t rows = shape.queryBlocks();
    const std::int64_t columns = shape.keyBlocks();
    std::vector<engine::TensorSpec> specs;
    std::vector<const std::vector<std::int32_t>*> data;
    const auto add = [&](const char* name, const std::vector<std::int32_t>& values, std::vector<std::int64_t> tail) {
        tail.insert(tail.begin(), {shape.batch, shape.heads});
        specs.push_back({name, kernels::DType::I32, std::move(tail)});
        data.push_back(&values);
    };
    add("kv_num_blocks", dense.kvNumBlocks, {rows});
    add("kv_indices", dense.kvIndices, {rows, columns});
    add("full_kv_num_blocks", dense.fullKvNumBlocks, {rows});
    add("full_kv_indices", dense.fullKvIndices, {rows, columns});
    add("q_num_blocks", dense.qNumBlocks, {columns});
    add("q_indices", dense.qIndices, {columns, rows});
    add("full_q_num_blocks", dense.fullQNumBlocks, {columns});
    add("full_q_indices", dense.fullQIndices, {columns, rows});
    const auto writer = engine::SafetensorsWriter::create(path, specs);
    for (const std::vector<std::int32_t>* values : data) {
        writer->write(values->data(), values->size() * sizeof(std::int32_t));
    }
    writer->finish();
}

} // namespace

json maskReport(const MaskQuestion& question, base::ProgressSink* progress, const base::StopToken& stop) {
    engine::CapturedTensors tensors;
    if (!question.tensorsFile.empty()) {
        tensors = engine::readCapturedTensors(question.tensorsFile);
    }
    const engine::ModModule module = parseMods(question.mods);
    const engine::ModProgram mask = module.mask(question.mask, modOptions(question.mods, tensors));
    const kernels::CaptureBinding binding = mask.binding();
    base::ThreadPool pool(question.threads);
    const ModRequest& mods = question.mods;

    const auto buildBegin = std::chrono::steady_clock::now();
    const kernels::BlockMask blocks = kernels::buildBlockMask(
        mask.program, binding,
        {mods.batch, mods.heads, mods.queries, mods.keys, question.blockSize, question.blockSize}, pool, progress,
        stop);
    const double buildSeconds = secondsSince(buildBegin);
    const auto densityBegin = std::chrono::steady_clock::now();
    const double density = kernels::elementDensity(blocks, mask.program, binding, pool, stop);
    const double densitySeconds = secondsSince(densityBegin);

    if (!question.picture.empty()) {
        writeMaskPicture(blocks, question.picture);
    }
    if (!question.output.empty()) {
        writeArrays(blocks, question.output);
    }
    return {{"mask", question.mask},
            {"program", kernels::printProgram(mask.program, "mask_mod")},
            {"q_len", mods.queries},
            {"kv_len", mods.keys},
            {"block_size", question.blockSize},
            {"batch", blocks.shape.batch},
            {"heads", blocks.shape.heads},
            {"blocks_full", blocks.full},
            {"blocks_partial", blocks.partial},
            {"blocks_empty", blocks.empty},
            {"block_sparsity", blocks.blockSparsity()},
            {"full_share", blocks.fullShare()},
            {"element_density", density},
            {"metadata_bytes", blocks.metadataBytes()},
            {"closed_form", kernels::intervalRows(mask.program).has_value()},
            {"build_seconds", buildSeconds},
            {"density_seconds", densitySeconds},
            {"notes", mask.notes}};
}

} // namespace vitrine::app
