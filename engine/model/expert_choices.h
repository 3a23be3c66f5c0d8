// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The experts that the routers of a model chose for some tokens, packed: what training needs to choose the same ones
// again.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrine::engine {

/// A row for each token, row after row. A row has the ids of k experts for each MoE layer in the order of the layers,
/// those of a layer by falling weight. An id takes one byte where the model has at most 256 experts, else two, the
/// lower one first.
struct ExpertChoices {
    static constexpr std::int64_t kExpertsOfAByte = 256;

    std::int64_t layers = 0; ///< that are MoE layers; 0: none was asked for, or the model has none
    std::int64_t k = 0;
    std::int64_t idBytes = 1;
    std::vector<std::uint8_t> bytes;

    std::size_t rowBytes() const { return static_cast<std::size_t>(layers * k * idBytes); }
    std::int64_t rows() const { return layers == 0 ? 0 : static_cast<std::int64_t>(bytes.size() / rowBytes()); }
    /// REQUIRES that there are these rows.
    std::span<const std::uint8_t> rowsFrom(std::int64_t row, std::int64_t count = 1) const {
        return std::span(bytes).subspan(static_cast<std::size_t>(row) * rowBytes(),
                                        static_cast<std::size_t>(count) * rowBytes());
    }
    /// REQUIRES a row that is there, a layer and a place below k.
    std::int32_t id(std::int64_t row, std::int64_t layer, std::int64_t place) const {
        const auto at = static_cast<std::size_t>(((row * layers + layer) * k + place) * idBytes);
        return idBytes == 1 ? bytes[at] : bytes[at] + (bytes[at + 1] << 8);
    }
};

} // namespace vitrine::engine
