// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/attention/block_mask_file.h"

#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/output_check.h"

namespace vitrine::engine {

void writeBlockMaskArrays(const kernels::BlockMask& mask, const std::string& path) {
    const kernels::DenseBlockMask dense = kernels::denseBlockMask(mask, true, kLargestExport);
    const kernels::BlockMaskShape& shape = mask.shape;
    const std::int64_t rows = shape.queryBlocks();
    const std::int64_t columns = shape.keyBlocks();
    std::vector<TensorSpec> specs;
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
    const auto writer = SafetensorsWriter::create(path, specs, madeBy(kMaskArraysOutput));
    for (const std::vector<std::int32_t>* values : data) {
        writer->write(values->data(), values->size() * sizeof(std::int32_t));
    }
    writer->finish();
}

} // namespace vitrine::engine
