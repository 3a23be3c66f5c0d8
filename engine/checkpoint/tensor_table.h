// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What all checkpoints have: a list of tensors by name.

#include <map>
#include <string>
#include <utility>

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Whoever derives adds the tensors and owns their files. Immutable after that.
class TensorTable : public Checkpoint {
public:
    const Location* find(std::string_view name) const override {
        const auto found = tensors_.find(name);
        return found == tensors_.end() ? nullptr : &found->second;
    }
    const std::map<std::string, Location, std::less<>>& tensors() const override { return tensors_; }
    std::uint64_t totalBytes() const override { return totalBytes_; }
    const std::string& folder() const override { return folder_; }

protected:
    explicit TensorTable(std::string folder) : folder_(std::move(folder)) {}

    /// Where a tensor of that name already is, or null: then it is added. File and entry outlive the table.
    const Location* add(const SafetensorsFile& file, const TensorEntry& entry) {
        const auto [slot, isNew] = tensors_.emplace(entry.name, Location{&file, &entry});
        totalBytes_ += isNew ? entry.bytes : 0;
        return isNew ? nullptr : &slot->second;
    }

private:
    std::string folder_;
    std::map<std::string, Location, std::less<>> tensors_;
    std::uint64_t totalBytes_ = 0;
};

} // namespace vitrine::engine
