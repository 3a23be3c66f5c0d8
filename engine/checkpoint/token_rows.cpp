// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/token_rows.h"

#include <cstddef>
#include <cstring>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/dtype.h"

namespace vitrine::engine {

void checkTokenIds(const std::vector<std::vector<std::int32_t>>& rows, std::int64_t vocab, const std::string& origin) {
    for (const auto& row : rows) {
        for (const std::int32_t id : row) {
            if (id < 0 || id >= vocab) {
                throw base::BadInput(
                    fmt::format("{}: id {} is outside the model's vocabulary of {}", origin, id, vocab));
            }
        }
    }
}

std::vector<std::vector<std::int32_t>> readTokenRows(const std::string& path) {
    const auto file = SafetensorsFile::open(path);
    const TensorEntry* entry = file->find("input_ids");
    if (entry == nullptr) {
        throw base::BadInput(path + ": input_ids: missing; the file must hold token ids (batch, seq)");
    }
    const bool wide = entry->dtype == kernels::DType::I64;
    if (!wide && entry->dtype != kernels::DType::I32) {
        throw base::BadInput(path + ": input_ids: must be I32 or I64");
    }
    if (entry->shape.size() != 2 || entry->shape[0] < 1 || entry->shape[1] < 1) {
        throw base::BadInput(path + ": input_ids: must have the shape (batch, seq), neither of them 0");
    }
    std::vector<std::byte> bytes(entry->bytes);
    file->read(*entry, 0, bytes.data(), bytes.size());
    const auto batch = static_cast<std::size_t>(entry->shape[0]);
    const auto length = static_cast<std::size_t>(entry->shape[1]);
    std::vector<std::vector<std::int32_t>> rows(batch, std::vector<std::int32_t>(length));
    const std::size_t width = wide ? 8 : 4;
    for (std::size_t i = 0; i < batch * length; ++i) {
        std::int64_t id = 0;
        std::int32_t narrow = 0;
        if (wide) {
            std::memcpy(&id, bytes.data() + i * width, width);
        } else {
            std::memcpy(&narrow, bytes.data() + i * width, width);
            id = narrow;
        }
        if (id < 0 || id > std::int64_t{0x7FFFFFFF}) {
            throw base::BadInput(fmt::format("{}: input_ids: {} is not a token id", path, id));
        }
        rows[i / length][i % length] = static_cast<std::int32_t>(id);
    }
    return rows;
}

} // namespace vitrine::engine
