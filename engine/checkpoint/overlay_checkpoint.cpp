// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/overlay_checkpoint.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/tensor_table.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

using kernels::DType;

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 20; ///< that are made at once

std::int64_t rowLength(const std::vector<std::int64_t>& shape) {
    return shape.size() < 2 ? 1 : shape.back();
}

std::vector<std::byte> storedRows(const OverlaidTensor& tensor, std::int64_t first, std::int64_t count) {
    const std::int64_t elements = count * rowLength(tensor.shape);
    std::vector<float> values(static_cast<std::size_t>(elements));
    tensor.rows(first, count, values);
    std::vector<std::byte> out(kernels::bytesOf(tensor.dtype, elements));
    kernels::storeFloats(tensor.dtype, values.data(), elements, out.data(), 0);
    return out;
}

class OverlayFile final : public SafetensorsFile {
public:
    OverlayFile(std::vector<OverlaidTensor> tensors, std::string path, std::string identity)
        : path_(std::move(path)), identity_(std::move(identity)), tensors_(std::move(tensors)) {
        std::uint64_t offset = 0;
        for (const OverlaidTensor& tensor : tensors_) {
            const std::uint64_t bytes = kernels::bytesOf(tensor.dtype, kernels::Shape(tensor.shape).count());
            entries_.push_back({tensor.name, tensor.dtype, tensor.shape, offset, bytes});
            offset += bytes;
        }
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            byName_.emplace(entries_[i].name, i);
        }
    }

    const std::string& path() const override { return path_; }
    const std::string& identity() const override { return identity_; }
    const std::vector<TensorEntry>& tensors() const override { return entries_; }
    const std::map<std::string, std::string>& metadata() const override { return metadata_; }
    const TensorEntry* find(std::string_view name) const override {
        const auto found = byName_.find(name);
        return found == byName_.end() ? nullptr : &entries_[found->second];
    }
    double cachedShare() const override { return 1; }
    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t bytes) const override {
        read(entry, offset, buffer, bytes);
        return buffer;
    }

    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const override {
        if (offset > entry.bytes || bytes > entry.bytes - offset) {
            throw base::Internal(
                fmt::format("{}: {}: reading {} bytes at {} of {}", path_, entry.name, bytes, offset, entry.bytes));
        }
        const OverlaidTensor& tensor = tensors_[byName_.find(entry.name)->second];
        const std::int64_t length = rowLength(entry.shape);
        const auto rowBytes = static_cast<std::uint64_t>(kernels::bytesOf(entry.dtype, length));
        const std::int64_t most = std::max<std::int64_t>(1, kMostElements / length);
        auto* to = static_cast<std::byte*>(out);
        for (std::uint64_t at = offset; at < offset + bytes;) {
            const auto row = static_cast<std::int64_t>(at / rowBytes);
            const auto needed = static_cast<std::int64_t>((offset + bytes - 1) / rowBytes) + 1 - row;
            const std::int64_t rows = std::min(most, needed);
            const std::vector<std::byte> made = storedRows(tensor, row, rows);
            const std::uint64_t begin = static_cast<std::uint64_t>(row) * rowBytes;
            const std::uint64_t stop = std::min(offset + bytes, begin + made.size());
            to = std::copy(made.begin() + static_cast<std::ptrdiff_t>(at - begin),
                           made.begin() + static_cast<std::ptrdiff_t>(stop - begin), to);
            at = stop;
        }
    }

private:
    std::string path_;
    std::string identity_;
    std::vector<OverlaidTensor> tensors_;
    std::vector<TensorEntry> entries_;
    std::map<std::string, std::string> metadata_;
    std::map<std::string, std::size_t, std::less<>> byName_;
};

class OverlayCheckpoint final : public TensorTable {
public:
    OverlayCheckpoint(std::shared_ptr<const Checkpoint> base, std::vector<OverlaidTensor> tensors, std::string path,
                      std::string identity)
        : TensorTable(base->folder()), base_(std::move(base)),
          file_(std::move(tensors), std::move(path), std::move(identity)) {
        for (const TensorEntry& entry : file_.tensors()) {
            add(file_, entry);
        }
        for (const auto& [name, location] : base_->tensors()) {
            if (find(name) == nullptr && find("model." + name) == nullptr) {
                add(*location.file, *location.entry);
            }
        }
    }

private:
    std::shared_ptr<const Checkpoint> base_;
    OverlayFile file_;
};

} // namespace

RowMaker rowsOf(const SafetensorsFile& file, const TensorEntry& entry) {
    return [&file, &entry](std::int64_t first, std::int64_t count, std::span<float> out) {
        const std::int64_t length = rowLength(entry.shape);
        std::vector<std::byte> bytes(kernels::bytesOf(entry.dtype, count * length));
        file.read(entry, kernels::bytesOf(entry.dtype, first * length), bytes.data(), bytes.size());
        kernels::loadFloats(entry.dtype, bytes.data(), 0, count * length, out.data());
    };
}

bool equalValues(const OverlaidTensor& a, const OverlaidTensor& b) {
    const std::int64_t length = rowLength(a.shape);
    const std::int64_t rows = kernels::Shape(a.shape).count() / length;
    const std::int64_t most = std::max<std::int64_t>(1, kMostElements / length);
    for (std::int64_t row = 0; row < rows; row += most) {
        const std::int64_t count = std::min(most, rows - row);
        if (storedRows(a, row, count) != storedRows(b, row, count)) {
            return false;
        }
    }
    return true;
}

std::shared_ptr<const Checkpoint> overlayCheckpoint(std::shared_ptr<const Checkpoint> base,
                                                    std::vector<OverlaidTensor> tensors, std::string path,
                                                    std::string identity) {
    return std::make_shared<const OverlayCheckpoint>(std::move(base), std::move(tensors), std::move(path),
                                                     std::move(identity));
}

} // namespace vitrine::engine
